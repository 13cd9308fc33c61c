"""A provider with a real one's schema and no cloud: what a cloud would decide is made up."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybrid.terraform.plugin import (
    UNKNOWN,
    DataSource,
    Diagnostics,
    Provider,
    Resource,
    is_known,
    mark_unknown,
    of_file,
)
from tests.terraform.stub.values import completed, unasked

SCHEMAS = Path(__file__).parent / "schemas"
Values = dict[str, Any]


def mark(planned: Mapping[str, Any]) -> str:
    """Return a few digits that stand for what an object was made of."""
    words = json.dumps(planned, sort_keys=True, default=repr)
    return hashlib.sha256(words.encode()).hexdigest()[:8]


def asked_for(
    schema: Mapping[str, Any], name: str, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return a provider's own schema as the real one serves it.

    What it requires and finds in the environment, such as `BAIDUCLOUD_ACCESS_KEY`, it does not
    require of the configuration.
    """
    block = schema["block"]
    attributes = {}
    for key, value in block.get("attributes", {}).items():
        is_there = f"{name}_{key}".upper() in environment
        attributes[key] = (
            {k: v for k, v in value.items() if k != "required"} | {"optional": True}
            if value.get("required") and is_there
            else value
        )
    return {**schema, "block": {**block, "attributes": attributes}}


class StubResource(Resource):
    """One type of resource, as the schema has it."""

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        self.name, self.schema = name, schema

    def validate(self, diagnostics: Diagnostics, config: Values) -> None:
        for path in unasked(self.schema["block"], config):
            words = f"{path[-1]}: its value is decided by the provider"
            diagnostics.error("Value for unconfigurable attribute", words, at=path)

    def create(
        self, diagnostics: Diagnostics, planned: Values, private: dict[str, Any]
    ) -> Values | None:
        return self.made_up(planned, mark(planned))

    def made_up(self, planned: Mapping[str, Any], key: str) -> Values:
        """Return a state in which all that is unknown is made up from `key`."""
        return completed(self.schema["block"], planned, f"{self.name}-{key}", UNKNOWN)

    def update(
        self, diagnostics: Diagnostics, prior: Values, planned: Values, private: dict[str, Any]
    ) -> Values:
        return self.made_up(planned, str(prior.get("id")))

    def delete(self, diagnostics: Diagnostics, state: Values, private: dict[str, Any]) -> None:
        """There is nothing to remove."""

    def import_(self, diagnostics: Diagnostics, identity: str) -> Values | None:
        return {"id": identity}


class StubData(DataSource):
    """One type of data source, as the schema has it."""

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        self.name, self.schema = name, schema

    def read(self, diagnostics: Diagnostics, config: Values) -> Values | None:
        block = self.schema["block"]
        asked = {key: value for key, value in config.items() if is_known(value)}
        return completed(block, mark_unknown(block, config), f"{self.name}-{mark(asked)}", UNKNOWN)


class StubProvider(Provider):
    """All that the schemas of a provider in `schemas/` hold."""

    def __init__(self, name: str) -> None:
        schemas = of_file(SCHEMAS / f"{name}.json")
        self.schema = asked_for(schemas["provider"], name, os.environ)
        super().__init__(
            {key: self.resource(key, value) for key, value in schemas["resource"].items()},
            {key: self.data(key, value) for key, value in schemas["data"].items()},
        )

    def resource(self, name: str, schema: Mapping[str, Any]) -> StubResource:
        """Return one type of resource."""
        return StubResource(name, schema)

    def data(self, name: str, schema: Mapping[str, Any]) -> StubData:
        """Return one type of data source."""
        return StubData(name, schema)
