"""The JSON schema of `hybrid.yaml`, for editors and for other tools."""

from __future__ import annotations

from typing import Any

from hybrid.settings.model import Settings


def json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a configuration file.

    It holds for one value at a time; rules between values are checked by `load` only.
    """
    schema = Settings.model_json_schema(by_alias=True)
    defs = schema["$defs"]
    for section in [schema, *defs.values()]:
        for key, rule in section.get("properties", {}).items():
            if "$ref" in rule:  # pydantic leaves out a description that the section has too
                rule.setdefault("description", defs[rule["$ref"].split("/")[-1]]["description"])
            if key not in section.get("required", ()):
                section["properties"][key] = _or_null(rule)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "hybrid.yaml",
    }


def _or_null(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule that also allows null, which means the default everywhere."""
    notes: dict[str, Any] = {
        key: rule[key] for key in ("title", "description", "default") if key in rule
    }
    core = {key: value for key, value in rule.items() if key not in notes}
    options = core.get("anyOf", [core])
    if {"type": "null"} in options:
        return rule
    return {**notes, "anyOf": [*options, {"type": "null"}]}
