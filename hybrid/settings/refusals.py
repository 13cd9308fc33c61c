"""Turns what pydantic refuses into problems in an operator's words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hybrid.core.quantity import shown
from hybrid.settings.catalogue import keys, known_keys, model_at
from hybrid.settings.origin import Origin
from hybrid.settings.problem import Path, Problem, path_text

_CLOSE = 0.6
# Words of SkyPilot, dstack and Ray for the same things, and of people in a hurry.
_SYNONYMS = {
    "cluster_name": "name",
    "cloud": "clouds",
    "pools": "clouds.any_of",
    "resources": "clouds.any_of",
    "hosts": "onprem.hosts",
    "on_prem": "onprem",
    "ssh_config": "onprem",
    "idle_duration": "idle.after",
    "idle_timeout_minutes": "idle.after",
    "idle_minutes_to_autostop": "idle.after",
    "max_workers": "budget.nodes",
    "max_hourly_cost": "budget.usd_per_hour",
    "max_price": "budget.usd_per_hour",
    "daily": "budget.usd_per_day",
    "monthly": "budget.usd_per_month",
    "hostname": "name",
    "gpu": "accelerators",
    "gpus": "accelerators",
    "spot": "use_spot",
    "price": "usd_per_hour",
    "provider": "infra",
    "wait": "max_wait",
    "stabilization": "stabilisation",
    "upscale_delay": "stabilisation",
    "downscale_delay": "idle.after",
}
_WHOLE = "{value} is not a whole number; write for example 4"
_NUMBER = "{value} is not a number; write for example 2.40"
_FLAG = "{value} is neither true nor false; write true or false"
_DATE = "{value} is not a date; write year, month and day, for example 2026-11-27"
_MAPPING = "{value} is not a mapping; write `key: value` lines below it"
_LIST = "{value} is not a list; begin each entry below it with `- `"
_CHOICE = "{value} is not possible here; write {expected}"
# By pydantic's name of what is wrong. A pattern is never shown: see `core.worded`.
_SENTENCES: Mapping[str, str] = {
    "missing": "it is missing; add it",
    "extra_forbidden": "this key is not known here; remove it or correct its name",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), _MAPPING),
    **dict.fromkeys(("tuple_type", "list_type"), _LIST),
    **dict.fromkeys(("literal_error", "enum"), _CHOICE),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), _NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), _FLAG),
    **dict.fromkeys(
        (
            *("date_type", "date_parsing", "date_from_datetime_parsing"),
            "date_from_datetime_inexact",
        ),
        _DATE,
    ),
    "greater_than": "{value} is too small; write a number above {gt:g}, for example 2.40",
    "greater_than_equal": "{value} is too small; write {ge:g} or more",
    "less_than": "{value} is too large; write a number below {lt:g}",
    "less_than_equal": "{value} is too large; write {le:g} or less",
    "string_too_short": "{value} is too short; characters wanted: {min_length} or more",
    "string_too_long": "{value} is too long; write {max_length} characters or fewer",
    "too_short": "{value} has too few entries; write {min_length} or more",
    "too_long": "{value} has too many entries; write {max_length} or fewer",
    "path_type": "{value} is not a path; write for example /etc/hybrid/keys.json",
    "string_pattern_mismatch": "{value} is not written as it must be; look up how in the docs of "
    "the provider",
}


def refusals(error: ValidationError, origin: Origin) -> Iterator[Problem]:
    """Yield a problem for each thing that the settings' models refused."""
    for item in error.errors(include_url=False):
        path: Path = item["loc"]
        if item["type"] == "extra_forbidden":
            yield origin.problem(path, unknown_key(path))
        else:
            yield origin.problem(path, sentence(item))


def sentence(item: ErrorDetails) -> str:
    """Return one refusal: what is wrong, then `;`, then what to write."""
    value, context = item.get("input"), item.get("ctx", {})
    kind = item["type"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_type":
        return _not_text(value)
    if kind in _SENTENCES:
        return _SENTENCES[kind].format(value=shown(value), **context)
    rule = item["msg"][:1].lower() + item["msg"][1:]
    return f"{shown(value)} is not possible here; {rule}"


def _not_text(value: object) -> str:
    if isinstance(value, int | float):
        kind = "a truth value" if isinstance(value, bool) else "a number"
        return f'{shown(value)} is {kind} and text is wanted; put it in quotes: "{shown(value)}"'
    if value is None:
        return "nothing is here; write text, or remove the key"
    return f"{shown(value)} is not text; write one word or line"


def unknown_key(path: Path) -> str:
    """Return what to say about a key that its section does not have."""
    key = str(path[-1])
    model = model_at(path[:-1])
    known = known_keys(model) if model else ()
    meant = _meant(key, known)
    if meant:
        return f"the key {shown(key)} is not known; did you mean {meant}?"
    return f"the key {shown(key)} is not known; known here are {', '.join(known)}"


def _meant(key: str, known: Iterable[str]) -> str:
    """Return the key that was meant: a near miss here, another tool's word, or one elsewhere."""
    known = tuple(known)
    synonym = _SYNONYMS.get(key.lower(), "")
    if synonym in known:
        return synonym
    close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=_CLOSE)
    if close:
        return close[0]
    if synonym and "." in synonym:
        return synonym
    elsewhere = [item.path for item in keys() if item.path[-1] == key]
    return path_text(elsewhere[0]).replace(".[]", "[0]") if elsewhere else ""
