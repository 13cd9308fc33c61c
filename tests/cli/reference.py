"""The generated parts of docs/configuration.md and docs/python.md."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

import hybrid
from hybrid import errors, placement
from hybrid.client import AsyncClient, Checkpoint, Client, DataEntry, Job
from hybrid.core.quantity import duration_text, size_text
from hybrid.settings.catalogue import Key, keys
from hybrid.settings.model import Settings
from hybrid.settings.schema import defaults_of, json_schema
from hybrid.settings.variables import variables
from providers.aws import params as aws
from providers.baidu import params as baidu
from providers.gcp import params as gcp
from providers.local import params as local

_PROVIDERS: Mapping[str, types.ModuleType] = {
    "aws": aws,
    "gcp": gcp,
    "baidu": baidu,
    "local": local,
}
_HEAD = ["| Key | Value | Default | Meaning |", "|---|---|---|---|"]


# --- docs/configuration.md ------------------------------------------------------------------


def configuration() -> str:
    """Return every key of hybrid.yaml, section by section, then those of each provider."""
    parts = ["## The file\n", *_HEAD, *_rows(Settings), ""]
    seen: set[type[BaseModel]] = set()
    for key in keys():
        if key.section is not None and key.section not in seen:
            seen.add(key.section)
            lead = "A list. " if key.is_list else ""
            parts += [f"## `{_path(key)}`\n", f"{lead}{_first(key.section)}\n", *_HEAD]
            parts += [*_rows(key.section), ""]
    for name, module in _PROVIDERS.items():
        parts += [*_provider(name, module)]
    parts += ["## Environment variables\n", "| Variable | Sets |", "|---|---|"]
    parts += [f"| `{name}` | `{'.'.join(path)}` |" for name, path in sorted(variables().items())]
    return "\n".join(parts).rstrip()


def _path(key: Key) -> str:
    return ".".join(part for part in key.path if part != "[]")


def _rows(section: type[BaseModel]) -> Iterator[str]:
    schema = json_schema()
    rules = schema["properties"] if section is Settings else None
    rules = rules or schema["$defs"][section.__name__]["properties"]
    defaults = defaults_of(section)
    below = {k.path[-1]: k.section for k in keys(section) if len(k.path) == 1}
    for name, info in section.model_fields.items():
        key = info.alias or name
        meaning = (info.description or "").replace("|", "\\|")
        default = "required" if info.is_required() else _default_text(defaults.get(key))
        kind = _kind(rules[key])
        if kind == "section":
            first = next(k for k in keys() if k.section is below[key])
            word = "list of sections" if first.is_list else "section"
            kind, default = f"[{word}](#{_anchor(_path(first))})", ""
        yield f"| `{key}` | {kind} | {default} | {meaning} |"


def _kind(rule: Mapping[str, Any]) -> str:
    """Return how a value is written, from its JSON schema."""
    options = [o for o in rule.get("anyOf", [rule]) if o.get("type") != "null"]
    return " or ".join(filter(None, map(_one_kind, options)))


def _one_kind(rule: Mapping[str, Any]) -> str:
    pattern = str(rule.get("pattern", ""))
    if "$ref" in rule or "$ref" in rule.get("items", {}):
        return "section"
    if "const" in rule or "enum" in rule:
        return " or ".join(f"`{value}`" for value in rule.get("enum", [rule.get("const")]))
    if "ms)?" in pattern:
        return "duration: `90s`, `5m`, `1h30m`, `2d`"
    if "KMGTP" in pattern:
        return "size: `80MB`, `16GiB`"
    if pattern.startswith("^[A-Za-z][A-Za-z0-9_.-]*(:"):
        return "GPUs: `A100:8`, `GPU:4`"
    if "[.][.]" in pattern:
        return "range: `10002..19999`, or `auto`"
    bounds = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
    limits = ", ".join(f"{word} {rule[name]:g}" for name, word in bounds.items() if name in rule)
    words = {"integer": "whole number", "boolean": "`true` or `false`", "object": "map"}
    words["array"] = "list"
    kind = words.get(str(rule.get("type")), str(rule.get("type", "")).replace("string", "text"))
    return f"{kind}, {limits}" if limits else kind


def _default_text(value: object) -> str:
    if value is None or value in ({}, [], ""):
        return "none"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text}`"


def _provider(name: str, module: types.ModuleType) -> Iterator[str]:
    common = {info.alias for info in _pool_section().model_fields.values()}
    yield f"## Keys of `{name}`\n"
    yield f"`providers.{name}`, the account:\n"
    yield from (*_HEAD, *_provider_rows(module.Params, {"pools"}, ""), "")
    yield f"In a pool with `infra: {name}/...`, beside the keys of every pool:\n"
    yield from (*_HEAD, *_provider_rows(module.Pool, {*common, "rank"}, ""), "")


def _pool_section() -> type[BaseModel]:
    return next(key.section for key in keys() if key.path == ("clouds", "any_of") and key.section)


def _provider_rows(model: type[BaseModel], left_out: set[Any], above: str) -> Iterator[str]:
    meanings = _meanings(model)
    for name, info in model.model_fields.items():
        inner = _model_in(info.annotation)
        if name in left_out:
            continue
        key = f"{above}{name}"
        meaning = meanings.get(name, "")
        if inner is not None:
            is_map = get_origin(info.annotation) is dict
            below = f"{key}.NAME." if is_map else f"{key}."
            yield f"| `{key}` | {'map of sections' if is_map else 'section'} |  | {meaning} |"
            yield from _provider_rows(inner, set(), below)
            continue
        default = "required" if info.is_required() else _raw_default(info)
        yield f"| `{key}` | {_provider_kind(info)} | {default} | {meaning} |"


def _provider_kind(info: FieldInfo) -> str:
    reader = _reader(info)
    if reader == "duration_s":
        return "duration"
    if reader == "size_bytes":
        return "size"
    names = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}
    options = get_args(info.annotation) or (info.annotation,)
    if get_origin(info.annotation) in (dict, tuple):
        return "map" if get_origin(info.annotation) is dict else "list"
    plain = [get_args(o)[0] if get_origin(o) is Annotated else o for o in options]
    found = [names[option] for option in plain if option in names]
    return " or ".join(found) or "see the meaning"


def _reader(info: FieldInfo) -> str:
    for item in (*info.metadata, *_nested(info.annotation)):
        if isinstance(item, BeforeValidator):
            names = getattr(item.func, "__code__", None)
            found = {"duration_s", "size_bytes"} & set(names.co_names if names else ())
            if found:
                return found.pop()
    return ""


def _nested(annotation: Any) -> Iterator[Any]:
    yield from getattr(annotation, "__metadata__", ())
    for part in get_args(annotation):
        yield from _nested(part)


def _raw_default(info: FieldInfo) -> str:
    value = info.get_default(call_default_factory=True)
    reader = _reader(info)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if reader == "duration_s":
            return f"`{duration_text(value)}`"
        if reader == "size_bytes":
            return f"`{size_text(int(value))}`"
    return "none" if value == () else _default_text(value)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if inspect.isclass(annotation) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, BaseModel) else None
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    from tests.cli.documents import meanings

    found: dict[str, str] = {}
    for kind in reversed([one for one in model.__mro__ if issubclass(one, BaseModel)]):
        found |= meanings(kind) if "__doc__" in vars(kind) else {}
    return found


def _anchor(path: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "", path.lower())


def _first(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


# --- docs/python.md -------------------------------------------------------------------------


def python() -> str:
    """Return the public names of `hybrid`, with signatures and docstrings."""
    parts = ["## Where work runs"]
    for name in ("prefer_onprem", "onprem_only", "cloud_only"):
        parts += _entry(f"hybrid.{name}", getattr(placement, name), "###")
    parts += ["", "## Inside a job", "", "See [the contract](checkpoints.md).", ""]
    for name in (
        "checkpoint_requested",
        "checkpoint_saved",
        "checkpoint_exit",
        "checkpoint_url",
        "resume_from",
        "gang",
    ):
        parts += _entry(f"hybrid.{name}", getattr(hybrid, name), "###")
    parts += ["", "## hybrid.Checkpoint", "", "```text", *_doc(Checkpoint), "```"]
    parts += ["", "## hybrid.DataEntry", "", "```text", *_doc(DataEntry), "```"]
    for kind in (Client, Job):
        parts += ["", f"## hybrid.{kind.__name__}", "", "```text", *_doc(kind), "```"]
        parts += _members(kind)
    parts += ["", "## hybrid.AsyncClient", "", "```text", *_doc(AsyncClient), "```", ""]
    parts += ["Its methods are those of `hybrid.Client`, awaited; `submit` and `job` give a job"]
    parts += ["whose methods are those of `hybrid.Job`, with `follow_logs()` for the output."]
    parts += ["", "## Errors", "", "| In `hybrid.errors` | Kind of | Meaning |", "|---|---|---|"]
    for name in errors.__all__:
        error = getattr(errors, name)
        above = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        parts.append(f"| `{name}` | {above} | {_first(error)} |")
    assert set(hybrid.__all__) >= {"Client", "Job"}
    return "\n".join(parts)


def _members(kind: type) -> Iterator[str]:
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            doc = _first(member.fget)
            yield from ("", f"### {kind.__name__}.{name}", "", "```text", doc, "```")
        elif inspect.isfunction(member):
            yield from _entry(f"{kind.__name__}.{name}", member, "###")


def _entry(name: str, function: Any, level: str) -> Sequence[str]:
    signature = str(inspect.signature(function)).replace("(self, ", "(").replace("(self)", "()")
    plain = re.sub(r"(: |-> )'([^']+)'", r"\1\2", signature)
    text = [f"{name}{plain}", "", *_doc(function)]
    return ["", f"{level} {name}", "", "```text", *text, "```"]


def _doc(thing: object) -> Sequence[str]:
    return (inspect.getdoc(thing) or "").splitlines()
