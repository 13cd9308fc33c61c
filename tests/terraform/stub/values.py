"""Values that a cloud would decide on, made up: typed, and the same for the same object. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Step = str | int
Block = Mapping[str, Any]


def made_up(kind: Any, key: str) -> Any:
    """Return a value of a Terraform type that depends on `key` alone."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    match kind:
        case "string":
            return f"{key.rpartition('.')[2]}-{digest[:8]}"
        case "number":
            return int(digest[:3], 16)
        case "bool":
            return False
        case ["list" | "set", _]:
            return []
        case ["map", _]:
            return {}
        case ["object", fields, *_]:
            return {name: made_up(inner, f"{key}.{name}") for name, inner in fields.items()}
        case _:
            return None


def completed(block: Block, value: Mapping[str, Any], key: str, unknown: object) -> dict[str, Any]:
    """Return an object with all that is unknown in it made up, at any depth."""
    out = dict(value)
    for name, attribute in block.get("attributes", {}).items():
        if out.get(name) is unknown:
            out[name] = made_up(attribute["type"], f"{key}.{name}")
    for name, nested in block.get("block_types", {}).items():
        inner = out.get(name)
        if isinstance(inner, list):
            out[name] = [
                completed(nested["block"], item, f"{key}.{name}{index}", unknown)
                for index, item in enumerate(inner)
            ]
        elif isinstance(inner, Mapping):
            out[name] = completed(nested["block"], inner, f"{key}.{name}", unknown)
    return out


def unasked(
    block: Block, value: Mapping[str, Any], path: Sequence[Step] = ()
) -> Iterator[Sequence[Step]]:
    """Yield the places of values that a configuration gives and only the provider may decide."""
    for name, attribute in block.get("attributes", {}).items():
        is_decided = attribute.get("computed") and not attribute.get("optional")
        if is_decided and value.get(name) is not None:
            yield (*path, name)
    for name, nested in block.get("block_types", {}).items():
        inner = value.get(name)
        for index, item in enumerate(inner if isinstance(inner, list) else []):
            if isinstance(item, Mapping):
                yield from unasked(nested["block"], item, (*path, name, index))
