"""The generated part of docs/terraform.md: every resource and data source, from their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybrid.terraform.provider.main import make


def terraform() -> str:
    """Return the reference of the provider `hybrid`."""
    provider = make()
    lines = [*_section("The provider block", provider.schema)]
    for name, resource in provider.resources.items():
        lines += _section(f"Resource `{name}`", resource.schema)
    for name, source in provider.data_sources.items():
        lines += _section(f"Data source `{name}`", source.schema)
    return "\n".join(lines)


def _section(title: str, schema: Mapping[str, Any]) -> Iterator[str]:
    block = schema["block"]
    yield from (f"## {title}", "")
    if block.get("description"):
        yield from (block["description"], "")
    yield from ("| Attribute | Type | | Meaning |", "|---|---|---|---|")
    yield from _rows(block["attributes"], "")
    yield ""


def _rows(attributes: Mapping[str, Any], prefix: str) -> Iterator[str]:
    order = sorted(attributes.items(), key=lambda item: not item[1].get("required"))
    for name, described in order:
        text = described["description"]
        if "default" in described:
            text += f" Default: `{described['default']}`."
        if described.get("replace"):
            text += " A change replaces the resource."
        yield f"| `{prefix}{name}` | {_type(described)} | {_use(described)} | {text} |"
        if inner := described.get("nested_type"):
            yield from _rows(inner["attributes"], f"{prefix}{name}.")


def _type(described: Mapping[str, Any]) -> str:
    if kind := described.get("nested_type"):
        return {"single": "object", "list": "list of objects"}[kind["nesting_mode"]]
    return "object" if described["type"] == "dynamic" else str(described["type"])


def _use(described: Mapping[str, Any]) -> str:
    if described.get("required"):
        return "required"
    return "optional" if described.get("optional") else "told"
