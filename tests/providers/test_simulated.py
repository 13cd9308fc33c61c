"""The cloud of the simulated world keeps the promises that real adapters keep.

So what the controller meets there is no cloud that could not be.
"""

from __future__ import annotations

import time
import uuid

import pytest

from hybrid.core.models import CloudState
from tests.providers.contract import ProviderContract, end, launch, listed, make_spec
from tests.providers.gang_contract import GangContract
from tests.world.clock import VirtualClock
from tests.world.cloud import Machine, SimCloud
from tests.world.world import make_offer


class SimAccount:
    """See `tests.providers.contract.Cloud` and `tests.providers.gang_contract.GangCloud`."""

    controller_url = "http://127.0.0.1:2"

    def __init__(self) -> None:
        self.cluster_id = f"c-{uuid.uuid4().hex[:8]}"
        self.clock = VirtualClock(time.time())  # the contract looks at the real one
        self.offers = [
            make_offer(offer_id="sim/a4", max_gang=4),
            make_offer(offer_id="sim/b1", instance_type="b1", gpu_count=1, shape={"GPU": 1.0}),
        ]
        self.machines: dict[str, Machine] = {}
        self.stock = 1_000

    def provider(self, cluster_id: str = "") -> SimCloud:
        return SimCloud(
            self.clock,
            self.offers,
            stock=self.stock,
            cluster_id=cluster_id or self.cluster_id,
            machines=self.machines,
        )

    def lose_next_answer(self) -> SimCloud:
        made = self.provider()
        made.launch_faults = ["lost"]
        return made

    def sell_out(self) -> None:
        self.leave(0)

    def leave(self, count: int) -> None:
        self.stock = len(self.provider().alive()) + count

    def tags(self, provider_id: str) -> dict[str, str]:
        return dict(self.machines[provider_id].spec.tags)


class TestSimulated(GangContract, ProviderContract):
    """The whole contract."""

    @pytest.fixture
    def cloud(self) -> SimAccount:
        return SimAccount()

    @pytest.fixture
    def provider(self, cloud: SimAccount) -> SimCloud:
        return cloud.provider()


def test_a_machine_that_ends_slowly_is_seen_to_stop_and_then_to_be_gone() -> None:
    cloud = SimAccount()
    provider = cloud.provider()
    provider.ends_slowly_s = 30.0
    provider_id = launch(provider, make_spec(cloud))

    provider.terminate([provider_id])
    stopping = listed(provider)[provider_id].state
    cloud.clock.advance(31.0)

    assert stopping is CloudState.STOPPING
    assert listed(provider)[provider_id].state is CloudState.GONE


def test_a_machine_whose_lease_is_over_ends_without_anybody() -> None:
    cloud = SimAccount()
    provider = cloud.provider()
    kept, let_go = (launch(provider, make_spec(cloud, expires_in_s=60.0)) for _ in range(2))
    provider.extend([kept], until_s=time.time() + 600)

    cloud.clock.advance(120.0)

    states = {i: item.state for i, item in listed(provider).items()}
    assert states == {kept: CloudState.RUNNING, let_go: CloudState.GONE}
    end(provider, kept)
