"""An emulated Google Cloud project as the provider contract needs it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.core.models import LaunchSpec
from hybrid.core.ports import ProviderContext
from providers.gcp import GcpProvider, make
from providers.gcp.naming import Place, decoded, decoded_key, instance_name
from tests.emulators.gcp import PROJECT, GcpEmulator, start

ZONE = "us-central1-a"
TYPE = "g2-standard-8"
POOL: dict[str, Any] = {
    "infra": f"gcp/us-central1/{ZONE}",
    "instance_type": TYPE,
    "accelerators": "L4:1",
    "cpus": 8,
    "memory": "32GB",
    "usd_per_hour": 0.85,
}
SETTINGS: dict[str, Any] = {
    "project": PROJECT,
    "image": f"projects/{PROJECT}/global/images/family/hybrid-node",
    "launch_wait": "5s",
    "call_timeout": "10s",
    "list_lag": "1s",
}


class GcpCloud:
    """See `tests.providers.contract.Cloud` and `tests.providers.gang_contract.GangCloud`.

    Attributes:
        pools, settings: What the next provider is made from.
    """

    def __init__(self, emulator: GcpEmulator) -> None:
        self.emulator = emulator
        self.cluster_id = f"c-{uuid.uuid4().hex[:8]}"
        self.controller_url = "http://10.0.0.2:8080"
        self.pools: list[dict[str, Any]] = [dict(POOL)]
        self.settings: dict[str, Any] = {**SETTINGS, "endpoint_url": emulator.url}

    def provider(self, cluster_id: str = "", **settings: object) -> GcpProvider:
        context = ProviderContext(
            cluster_id=cluster_id or self.cluster_id,
            cluster_name="test",
            state_dir="",
            ray_dir="",
            clock=SystemClock(),
        )
        raw = {**self.settings, **settings, "pools": self.pools}
        return make("gcp", raw, context)

    def lose_next_answer(self) -> GcpProvider:
        self.emulator.faults.add(method="instances.*nsert", is_after=True, is_dropped=True)
        return self.provider()

    def sell_out(self) -> None:
        self.leave(0)

    def leave(self, count: int) -> None:
        self.emulator.cloud.capacity[ZONE, TYPE] = count

    def tags(self, provider_id: str) -> dict[str, str]:
        place = Place.of(provider_id)
        assert place is not None
        labels = self.emulator.cloud.instances[place.project, place.zone, place.name]["labels"]
        return {decoded_key(k) or "": decoded(v) or "" for k, v in labels.items()}

    def later(self, duration_s: float) -> None:
        """Let time pass in the cloud, and not here."""
        self.emulator.api.needs_token = False  # tokens are dated here
        self.emulator.cloud.clock_skew_s += duration_s

    def names(self) -> list[str]:
        """Return the names of all machines that exist, whoever they belong to."""
        return sorted(name for _, _, name in self.emulator.cloud.instances)

    def calls(self, method: str) -> int:
        """Return how many requests of a method came."""
        return sum(record.method == method for record in self.emulator.api.log)


@contextmanager
def gcp_cloud() -> Iterator[GcpCloud]:
    """Yield a cloud; afterwards check that every request and answer was as Google says."""
    emulator = start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(emulator.key_file))
        patch.setenv("NO_GCE_CHECK", "true")  # do not look for a metadata server
        try:
            yield GcpCloud(emulator)
        finally:
            emulator.stop()
    assert emulator.api.violations == []


def methods(cloud: GcpCloud) -> list[str]:
    """Return the methods of all requests, in order."""
    return [record.method for record in cloud.emulator.api.log]


def instances(cloud: GcpCloud) -> list[dict[str, Any]]:
    """Return all machines that exist, as Google has them."""
    return list(cloud.emulator.cloud.instances.values())


def name_of(spec: LaunchSpec) -> str:
    """Return the name of the machine of a spec."""
    return instance_name(spec.cluster_id, spec.instance_id, spec.attempt)


def take_away(cloud: GcpCloud, provider_id: str) -> None:
    """Make a machine vanish, without any call of ours."""
    place = Place.of(provider_id)
    assert place is not None
    del cloud.emulator.cloud.instances[place.project, place.zone, place.name]
