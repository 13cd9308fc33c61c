"""Tests of the JSON schema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from hybrid.settings import Settings, dump, json_schema
from hybrid.settings.catalogue import keys


def errors(content: dict[str, Any]) -> list[str]:
    """Return where the schema refuses `content`."""
    validator = jsonschema.Draft202012Validator(json_schema())
    return [error.json_path for error in validator.iter_errors(content)]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_the_schema_admits_the_defaults_written_out() -> None:
    assert errors(dump(Settings(name="a"))) == []


def test_the_schema_admits_null_wherever_there_is_a_default() -> None:
    assert errors({"name": "a", "burst": None, "head": {"cpus": None}, "clouds": None}) == []


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({}, "$"),
        ({"name": "A"}, "$.name"),
        ({"name": "a", "x": 1}, "$"),
        ({"name": "a", "head": {"port": 22}}, "$.head.port"),
        ({"name": "a", "idle": {"after": 5}}, "$.idle.after"),
        ({"name": "a", "idle": {"after": ""}}, "$.idle.after"),
        (
            {"name": "a", "onprem": {"hosts": [{"name": "b", "accelerators": "A100 x 8"}]}},
            "$.onprem",
        ),
        ({"name": "a", "budget": {"usd_per_day": -1}}, "$.budget.usd_per_day"),
    ],
)
def test_the_schema_refuses_what_loading_refuses(content: dict[str, Any], path: str) -> None:
    assert any(found.startswith(path) or path.startswith(found) for found in errors(content))


def test_every_key_is_described() -> None:
    schema = json_schema()
    sections = [schema, *schema["$defs"].values()]

    for section in sections:
        for key, rule in section.get("properties", {}).items():
            assert rule.get("description", "").endswith((".", "?")), key
    assert sum(1 for _ in keys()) > 60
