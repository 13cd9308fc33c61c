"""Values on the wire: msgpack as Terraform writes it, and values not yet known."""

from __future__ import annotations

import json
from typing import Any

import msgpack

from hybrid.terraform.plugin.messages import MESSAGES


class _Unknown:
    """The value of an attribute that only `apply` will tell."""

    def __repr__(self) -> str:
        return "<unknown>"

    def __copy__(self) -> _Unknown:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> _Unknown:
        return self


UNKNOWN = _Unknown()


def is_known(value: object) -> bool:
    """Return whether a value is neither null nor unknown."""
    return value is not None and value is not UNKNOWN


def unpack(wire: Any) -> Any:
    """Return a `DynamicValue` as Python's own types; `None` for null."""
    if wire.msgpack:
        return msgpack.unpackb(wire.msgpack, ext_hook=lambda *_: UNKNOWN, strict_map_key=False)
    return json.loads(wire.json) if wire.json else None


def pack(value: object) -> Any:
    """Return a value as a `DynamicValue`."""
    return MESSAGES["DynamicValue"](msgpack=msgpack.packb(_wire(value), default=_extension))


def _extension(value: object) -> msgpack.ExtType:
    if value is UNKNOWN:
        return msgpack.ExtType(0, b"\0")
    raise TypeError(f"{type(value).__name__} has no form in Terraform: {value!r}")


def _wire(value: object) -> object:
    if isinstance(value, float):
        # Terraform's numbers are decimal: 0.1 as a binary float is another number to it, and a
        # plan that differs from the configuration is refused
        return int(value) if value.is_integer() else repr(value)
    if isinstance(value, dict):
        return {key: _wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_wire(item) for item in value]
    return value


def number(value: object) -> object:
    """Return a number that came as text (Terraform does so where a float is not exact)."""
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)
