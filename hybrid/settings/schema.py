"""The JSON schema of `hybrid.yaml`, for editors and for other tools."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from hybrid.settings.catalogue import keys
from hybrid.settings.model import Settings


def json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a configuration file.

    It holds for one value at a time; rules between values are checked by `load` only.
    """
    schema = Settings.model_json_schema(by_alias=True)
    defs = schema["$defs"]
    sections = {key.section for key in keys() if key.section is not None}
    for model in sections:
        written = defaults_of(model)
        for key, rule in defs[model.__name__]["properties"].items():
            if rule.get("default") is not None:  # pydantic's is a bare number, without its unit
                rule["default"] = written[key]
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


def defaults_of(section: type[BaseModel]) -> dict[str, Any]:
    """Return the default of each key that has one, as it is written in a file."""
    return section.model_construct().model_dump(mode="json", by_alias=True, warnings=False)


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
