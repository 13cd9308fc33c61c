"""Schemas: how they are written, sent, and laid over values.

A schema is a dictionary in the shape of `terraform providers schema -json`, so that one
recovered from a real provider serves as it is. Ours may hold three more keys in an attribute:

- `check`: a function from a known value to a sentence that refuses it, or `""`;
- `default`: the value planned where the configuration has none;
- `replace`: a change of it makes Terraform replace the resource (outermost attributes only).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hybrid.terraform.plugin.messages import MESSAGES

Type = str | list[Any]
"""`"string"`, `"number"`, `"bool"`, `["list", T]`, `["map", T]`, `["object", {name: T}]`, ..."""
Schema = Mapping[str, Any]
Values = dict[str, Any]
Check = Callable[[Any], str]

_NESTING = {"single": 1, "list": 2, "set": 3, "map": 4, "group": 5}
_FLAGS = ("required", "optional", "computed", "sensitive", "deprecated", "write_only")


def attribute(type_: Type, description: str = "", **more: object) -> dict[str, Any]:
    """Return an attribute; `more` are its flags, and the three keys of this module."""
    return {"type": type_, "description": description, **more}


def nested(
    mode: str, attributes: Mapping[str, Any], description: str = "", **flags: object
) -> dict[str, Any]:
    """Return a nested attribute: `mode` is `single`, `list`, `set` or `map`."""
    kind = {"nesting_mode": mode, "attributes": dict(attributes)}
    return {"nested_type": kind, "description": description, **flags}


def block(
    attributes: Mapping[str, Any], block_types: Mapping[str, Any] | None = None, text: str = ""
) -> dict[str, Any]:
    """Return a block of attributes and nested blocks."""
    return {
        "attributes": dict(attributes),
        "block_types": dict(block_types or {}),
        "description": text,
    }


def nested_block(mode: str, content: Mapping[str, Any], **bounds: int) -> dict[str, Any]:
    """Return a nested block; `bounds` are `min_items` and `max_items`."""
    return {"nesting_mode": mode, "block": content, **bounds}


def make_schema(content: Mapping[str, Any], version: int = 0) -> dict[str, Any]:
    """Return the schema of a resource, a data source or a provider."""
    return {"version": version, "block": content}


def of_file(path: Path) -> Mapping[str, Any]:
    """Return schemas recovered from a real provider: keys `provider`, `resource`, `data`."""
    content = json.loads(path.read_text())
    return {
        "provider": content.get("provider") or {"block": {}},
        "resource": content.get("resource") or {},
        "data": content.get("data") or {},
    }


def wire(described: Schema) -> Any:
    """Return a schema as the message `Schema`."""
    version = described.get("version", 0)
    return MESSAGES["Schema"](version=version, block=_wire_block(described.get("block") or {}))


def _wire_block(content: Schema) -> Any:
    nested_blocks = [
        MESSAGES["Schema.NestedBlock"](
            type_name=name,
            block=_wire_block(inner["block"]),
            nesting=_NESTING[inner["nesting_mode"]],
            min_items=inner.get("min_items", 0),
            max_items=inner.get("max_items", 0),
        )
        for name, inner in sorted(blocks_of(content).items())
    ]
    attributes = [_wire_attribute(*item) for item in sorted(attributes_of(content).items())]
    return MESSAGES["Schema.Block"](
        description=content.get("description", ""), attributes=attributes, block_types=nested_blocks
    )


def _wire_attribute(name: str, described: Schema) -> Any:
    flags = {flag: True for flag in _FLAGS if described.get(flag)}
    message = MESSAGES["Schema.Attribute"](
        name=name, description=described.get("description", ""), **flags
    )
    if kind := described.get("nested_type"):
        message.nested_type.nesting = _NESTING[kind["nesting_mode"]]
        message.nested_type.attributes.extend(
            _wire_attribute(*item) for item in sorted(kind["attributes"].items())
        )
    else:
        message.type = json.dumps(described["type"], separators=(",", ":")).encode()
    return message


def attributes_of(content: Schema) -> Mapping[str, Any]:
    """Return a block's attributes by name."""
    return content.get("attributes") or {}


def blocks_of(content: Schema) -> Mapping[str, Any]:
    """Return a block's nested blocks by name."""
    return content.get("block_types") or {}
