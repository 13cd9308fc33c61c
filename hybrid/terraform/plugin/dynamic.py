"""Values of any type (`"dynamic"` in a schema): they travel with their type beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hybrid.terraform.plugin.values import UNKNOWN, number


def plain(wire: object) -> Any:
    """Return a dynamic value as Python's own types; unknown parts stay `UNKNOWN`."""
    if wire is None or wire is UNKNOWN:
        return wire
    kind, value = wire if isinstance(wire, list | tuple) else (None, wire)
    return _plain(json.loads(kind) if kind is not None else None, value)


def of_plain(value: object) -> list[Any] | None:
    """Return JSON as a dynamic value; `None` for null."""
    if value is None:
        return None
    return [json.dumps(_type(value), separators=(",", ":")).encode(), value]


def of_state(stored: Mapping[str, Any]) -> list[Any]:
    """Return what the state file holds of a dynamic value."""
    return [json.dumps(stored["type"], separators=(",", ":")).encode(), stored["value"]]


def _plain(kind: Any, value: Any) -> Any:
    if value is None or value is UNKNOWN or kind is None:
        return value
    if kind == "number":
        return number(value)
    if isinstance(kind, str):
        return plain(value) if kind == "dynamic" else value
    name, inner = kind[0], kind[1]
    if name in ("list", "set"):
        return [_plain(inner, item) for item in value]
    if name == "map":
        return {key: _plain(inner, item) for key, item in value.items()}
    if name == "tuple":
        return [_plain(t, item) for t, item in zip(inner, value, strict=True)]
    return {key: _plain(inner[key], item) for key, item in value.items()}


def _type(value: object) -> Any:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, Mapping):
        return ["object", {key: _type(item) for key, item in value.items()}]
    if isinstance(value, list | tuple):
        return ["tuple", [_type(item) for item in value]]
    return "dynamic" if value is None else "string"
