"""An AWS account at the emulator, as the contract and the tests of the adapter need it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.core.catalog import Catalog
from hybrid.core.ports import Clock, ProviderContext
from providers.aws import AwsProvider
from providers.aws.client import AwsClient
from providers.aws.params import Params
from tests.emulators.aws import ACCESS_KEY, IMAGE, SECRET_KEY, AwsEmulator, Controls

ACCOUNT = "123456789012"
ZONES = ("us-east-1a", "us-east-1b")
TYPE = "g5.xlarge"
POOL = {
    "infra": "aws/us-east-1/us-east-1a",
    "instance_type": TYPE,
    "accelerators": "A10G:1",
    "cpus": 4,
    "memory": "8GiB",
    "usd_per_hour": 1.006,
}
# The whole of what boto3 finds: nothing of the machine that runs the tests.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_CONFIG_FILE": "/nonexistent/config",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent/credentials",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_UNSET = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL")


class AwsCloud:
    """See `tests.providers.contract.Cloud`.

    Attributes:
        pools: Of the next provider that is made.
        regions: The same.
        more: Other account-level settings of it.
        catalog: Prices, beside those of the pools.
        rates: Exchange rates.
    """

    def __init__(self, emulator: AwsEmulator, client: AwsClient) -> None:
        self.emulator = emulator
        self.client = client
        self.cluster_id = f"c-{uuid.uuid4().hex[:8]}"
        self.controller_url = "http://10.0.0.1:8700"
        self.clock: Clock = SystemClock()
        self.pools: list[dict[str, Any]] = [dict(POOL)]
        subnets = {zone: emulator.moto.subnet(zone) for zone in ZONES}
        group = emulator.moto.security_group("us-east-1")
        self.regions: dict[str, Any] = {
            "us-east-1": {"image": IMAGE, "subnets": subnets, "security_groups": [group]}
        }
        self.more: dict[str, Any] = {}
        self.catalog = Catalog()
        self.rates: dict[str, float] = {}

    @property
    def controls(self) -> Controls:
        return self.emulator.controls

    def raw(self) -> dict[str, Any]:
        return {
            "pools": self.pools,
            "regions": self.regions,
            "endpoint_url": self.emulator.url,
            **self.more,
        }

    def provider(self, cluster_id: str = "") -> AwsProvider:
        context = ProviderContext(
            cluster_id=cluster_id or self.cluster_id,
            cluster_name="test",
            state_dir="/nonexistent",
            ray_dir="/nonexistent",
            clock=self.clock,
            catalog=self.catalog,
            rates=self.rates,
        )
        params = Params.model_validate(self.raw())
        return AwsProvider("aws", params, context, client=self.client)

    def lose_next_answer(self) -> AwsProvider:
        for action in ("RunInstances", "CreateFleet"):
            self.controls.fail(action, is_after=True, is_dropped=True)
        return self.provider()

    def sell_out(self) -> None:
        self.controls.sell_out()

    def tags(self, provider_id: str) -> dict[str, str]:
        return self.emulator.moto.tags(provider_id.rpartition("/")[2])

    def machine(self, provider_id: str) -> Any:
        """Return an instance as moto holds it."""
        return self.emulator.moto.find(provider_id.rpartition("/")[2])


def set_environment(patch: pytest.MonkeyPatch) -> None:
    """Give boto3 the emulator's credentials, and hide what else it could find."""
    for name in _UNSET:
        patch.delenv(name, raising=False)
    for name, value in ENVIRONMENT.items():
        patch.setenv(name, value)


class AwsAccount:
    """An emulator, and a client for it whose making takes a second: one for many tests."""

    def __init__(self) -> None:
        self.emulator = AwsEmulator()
        self.client = AwsClient(provider="aws", endpoint_url=self.emulator.url)

    def close(self) -> None:
        self.client.close()
        self.emulator.stop()
