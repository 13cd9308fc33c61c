"""The AWS stub: objects live in the AWS emulator that AWS_ENDPOINT_URL names.

Without that variable it makes values up, which is enough to plan.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hybrid.terraform.plugin import UNKNOWN, Diagnostics
from tests.terraform.stub.aws import identity, network, storage
from tests.terraform.stub.aws.cloud import Cloud, Kind
from tests.terraform.stub.aws.reading import DATA, OFFLINE
from tests.terraform.stub.provider import StubData, StubProvider, StubResource, Values

KINDS: Mapping[str, Kind] = network.KINDS | storage.KINDS | identity.KINDS
Private = dict[str, Any]
_ENDED = "No valid credential sources found"


class AwsStub(StubProvider):
    """See the module."""

    def __init__(self) -> None:
        self.cloud: Cloud | None = None
        self.region = ""
        self.default_tags: Mapping[str, str] = {}
        super().__init__("aws")

    def configure(self, diagnostics: Diagnostics, config: Values, terraform_version: str) -> None:
        region = config.get("region") or os.environ.get("AWS_REGION")
        key = config.get("access_key") or os.environ.get("AWS_ACCESS_KEY_ID")
        secret = config.get("secret_key") or os.environ.get("AWS_SECRET_ACCESS_KEY")
        if not isinstance(region, str):
            diagnostics.error("Invalid provider configuration", "AWS region is not set.")
            return
        # In the words of the real provider.
        if not (isinstance(key, str) and isinstance(secret, str)):
            diagnostics.error(_ENDED, "Please see the provider's page on authentication.")
            return
        self.region = region
        for item in config.get("default_tags") or []:
            self.default_tags = item.get("tags") or {}
        if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
            self.cloud = Cloud(endpoint=endpoint, region=region, key=key, secret=secret)

    def resource(self, name: str, schema: Mapping[str, Any]) -> StubResource:
        return AwsResource(name, schema, self)

    def data(self, name: str, schema: Mapping[str, Any]) -> StubData:
        return AwsData(name, schema, self)


class AwsResource(StubResource):
    """One type of resource; in the emulator, if there is one and it is of a kind it has."""

    def __init__(self, name: str, schema: Mapping[str, Any], provider: AwsStub) -> None:
        super().__init__(name, schema)
        self._provider = provider

    def plan(
        self, diagnostics: Diagnostics, prior: Values | None, proposed: Values, config: Values
    ) -> Values:
        planned = dict(proposed)
        attributes = self.schema["block"]["attributes"]
        if "tags_all" in attributes:
            own = planned.get("tags")
            given = own if isinstance(own, Mapping) else {}
            is_known = own is not UNKNOWN and UNKNOWN not in given.values()
            planned["tags_all"] = {**self._provider.default_tags, **given} if is_known else UNKNOWN
        if "region" in attributes and not isinstance(planned.get("region"), str):
            planned["region"] = self._provider.region
        return planned

    def create(self, diagnostics: Diagnostics, planned: Values, private: Private) -> Values | None:
        made = self._live().create(self._cloud(), planned) if self._is_live() else {}
        decided = {k: v for k, v in made.items() if planned.get(k) in (UNKNOWN, None)}
        return self.made_up({**planned, **decided}, str(made.get("id", planned)))

    def read(self, diagnostics: Diagnostics, state: Values, private: Private) -> Values | None:
        if not self._is_live():
            return state
        found = self._live().read(self._cloud(), state)
        if found is None:
            return None
        # An empty tag map and none are the same to the real provider.
        if found.get("tags") is None and state.get("tags") == {}:
            found = {**found, "tags": {}}
        if "region" in self.schema["block"]["attributes"]:
            found = {"region": self._provider.region, **found}
        return {**state, **found}

    def update(
        self, diagnostics: Diagnostics, prior: Values, planned: Values, private: Private
    ) -> Values:
        changed = sorted(k for k, v in planned.items() if v != prior.get(k))
        if (
            self._is_live()
            and self.name.startswith("aws_")
            and set(changed) <= {"tags", "tags_all"}
        ):
            tags = [{"Key": k, "Value": v} for k, v in (planned.get("tags_all") or {}).items()]
            self._cloud().ec2.create_tags(Resources=[prior["id"]], Tags=tags)
        elif self._is_live():
            words = f"the stub changes nothing in place but tags, and this is {', '.join(changed)}"
            diagnostics.error(f"{self.name} cannot be changed", words)
            return prior
        return super().update(diagnostics, prior, planned, private)

    def delete(self, diagnostics: Diagnostics, state: Values, private: Private) -> None:
        if self._is_live():
            self._live().delete(self._cloud(), state)

    def _is_live(self) -> bool:
        return self._provider.cloud is not None and self.name in KINDS

    def _live(self) -> Kind:
        return KINDS[self.name]

    def _cloud(self) -> Cloud:
        assert self._provider.cloud is not None
        return self._provider.cloud


class AwsData(StubData):
    """One type of data source."""

    def __init__(self, name: str, schema: Mapping[str, Any], provider: AwsStub) -> None:
        super().__init__(name, schema)
        self._provider = provider

    def read(self, diagnostics: Diagnostics, config: Values) -> Values | None:
        values = super().read(diagnostics, config)
        cloud = self._provider.cloud
        if cloud is not None and self.name in DATA:
            found = DATA[self.name](cloud, config)
            if found is None:
                diagnostics.error(f"no matching {self.name} found", str(config.get("id") or ""))
                return None
        else:
            found = (
                OFFLINE[self.name](self._provider.region, config) if self.name in OFFLINE else {}
            )
        return {**(values or {}), **found}
