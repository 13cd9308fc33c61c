"""Turns what pydantic refuses into problems in an operator's words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

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
    value = item.get("input")
    context = item.get("ctx", {})
    match item["type"]:
        case "value_error":
            return str(context["error"])
        case "missing":
            return "it is missing; add it"
        case "extra_forbidden":
            return "this key is not known here; remove it or correct its name"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{shown(value)} is not a mapping; write `key: value` lines below it"
        case "tuple_type" | "list_type":
            return f"{shown(value)} is not a list; begin each entry below it with `- `"
        case "literal_error" | "enum":
            return f"{shown(value)} is not possible here; write {context['expected']}"
        case "string_pattern_mismatch":
            return f"{shown(value)} is not possible here; write what fits {context['pattern']}"
        case _:
            rule = item["msg"][:1].lower() + item["msg"][1:]
            return f"{shown(value)} is not possible here; {rule}"


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
