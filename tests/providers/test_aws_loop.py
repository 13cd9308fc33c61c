"""The controller's own loop rents in the emulated AWS, on a virtual clock."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.models import CloudInstance, InstanceState, LaunchSpec, Offer
from hybrid.core.models.withheld import Offered
from hybrid.core.ports import Ledger
from providers.aws import AwsProvider
from providers.aws.userdata import SHUTDOWN_AFTER_S
from tests.providers.aws_cloud import POOL, ZONES, AwsCloud
from tests.world.clock import VirtualClock
from tests.world.cloud import Machine
from tests.world.fixtures import fast_path, quiet_log
from tests.world.trace import Crash, Point
from tests.world.world import Controller, World, make_params

__all__ = ["fast_path", "quiet_log"]

pytestmark = pytest.mark.slow

GPU = {"GPU": 1.0}
S = InstanceState


@dataclass
class AwsInWorld:
    """The adapter, and what a world must see of the machines behind it."""

    cloud: AwsCloud
    clock: VirtualClock
    name: str = "aws"
    calls: list[str] = field(default_factory=list)
    machines: dict[str, Machine] = field(default_factory=dict)
    _launches: dict[str, Machine] = field(default_factory=dict)

    def connect(self, cluster_id: str) -> None:
        """Make a new adapter, as a new process does."""
        self.cloud.clock = self.clock
        self.provider: AwsProvider = self.cloud.provider(cluster_id)

    # --- the port -------------------------------------------------------------------------

    @property
    def list_lag_s(self) -> float:
        return self.provider.list_lag_s

    def offers(self) -> Sequence[Offer]:
        return self.provider.offers()

    def pool_offers(self) -> Sequence[Offered]:
        return self.provider.pool_offers()

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        self.calls.append("launch")
        self._launches[token] = Machine(
            provider_id="",
            token=token,
            join_token=join_token,
            spec=spec,
            offer=offer,
            launched_at_s=0,
            booted_s=0,
            expires_at_s=None,
            lease_end_s=0,
        )
        return self.provider.launch(offer, spec, token=token, join_token=join_token)

    def list_instances(self) -> Sequence[CloudInstance]:
        self._end_overdue()
        return self.provider.list_instances()

    def terminate(self, provider_ids: Collection[str]) -> None:
        self.provider.terminate(provider_ids)

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        self.provider.extend(provider_ids, until_s=until_s)

    # --- the world's side -----------------------------------------------------------------

    def booted(self) -> list[Machine]:
        return self.alive()

    def alive(self) -> list[Machine]:
        self._end_overdue()
        return [self._machine(i) for i in self.instances() if i.state == "running"]

    def instances(self) -> list[Any]:
        return self.cloud.emulator.moto.instances("us-east-1")

    def _end_overdue(self) -> None:
        """Do what the service on each machine does when its lease is over."""
        for instance in self.instances():
            until_s = float(self.cloud.emulator.moto.tags(instance.id)["hybrid-expires-at"])
            if instance.state == "running" and self.clock.now_s() > until_s + SHUTDOWN_AFTER_S:
                assert instance.instance_initiated_shutdown_behavior == "terminate"
                instance.terminate()

    def _machine(self, instance: Any) -> Machine:
        """Return a machine, known by EC2's id, so that a second one is another."""
        if instance.id not in self.machines:
            token = self.cloud.emulator.moto.tags(instance.id)["hybrid-token"]
            self.machines[instance.id] = self._launches[token]
        return self.machines[instance.id]


@dataclass
class AwsWorld(World):
    """A world whose only cloud is the emulated one."""

    aws: AwsCloud | None = None
    rented: AwsInWorld | None = None

    def _make(self, ledger: Ledger) -> Controller:
        assert self.aws is not None
        if self.rented is None:
            self.rented = AwsInWorld(self.aws, self.clock)
            self.clouds = {"aws": self.rented}  # type: ignore[dict-item]  # all a world needs
        self.rented.connect(ledger.cluster_id)
        return super()._make(ledger)

    @property
    def ec2(self) -> AwsInWorld:
        assert self.rented is not None
        return self.rented

    def zones(self) -> list[str]:
        return [i.placement.zone for i in self.ec2.instances() if i.state == "running"]

    def has_burst(self) -> bool:
        return S.RUNNING in {row.state for row in self.rows()}


@pytest.fixture
def world(aws: AwsCloud, fast_path: Path) -> AwsWorld:
    aws.pools = [POOL | {"infra": f"aws/us-east-1/{zone}"} for zone in ZONES]
    return busy(aws, fast_path)


def busy(aws: AwsCloud, fast_path: Path) -> AwsWorld:
    """Return a world that has sent one task more than the two hosts of four GPUs can hold."""
    # A short lease: each second of the world is a call over HTTP.
    params = make_params().model_copy(update={"lease_s": 60.0, "renew_s": 15.0})
    clock = VirtualClock(now_s=time.time())
    world = AwsWorld(fast_path, params=params, clock=clock, aws=aws)
    world.ray.submit(9, GPU, 60.0)
    return world


def test_a_burst_comes_and_goes(world: AwsWorld) -> None:
    world.run(60, until=world.has_burst)
    zones = world.zones()
    world.run(300, until=world.is_quiet)

    assert len(zones) == 1
    world.assert_nothing_left()
    assert world.zones() == []


def test_what_is_sold_out_is_left_for_the_next(world: AwsWorld) -> None:
    world.ec2.cloud.controls.set_stock(0, zone=ZONES[0])

    world.run(60, until=world.has_burst)

    assert world.zones() == [ZONES[1]]
    assert [row.state for row in world.rows()] == [S.FAILED, S.RUNNING]
    assert world.ec2.cloud.controls.count("RunInstances") == 2


def test_a_pool_that_nobody_can_price_is_told_and_the_next_is_rented(
    aws: AwsCloud, fast_path: Path
) -> None:
    bare = {key: value for key, value in POOL.items() if key != "usd_per_hour"}
    first, second = (f"aws/us-east-1/{zone}" for zone in ZONES)
    aws.pools = [bare | {"infra": first}, POOL | {"infra": second}]
    world = busy(aws, fast_path)

    world.run(60, until=world.has_burst)

    assert world.zones() == [ZONES[1]]
    (left_out,) = world.desk.plan().withheld
    assert left_out.offer_id.startswith(first)
    assert "has no on-demand price of g5.xlarge in us-east-1" in left_out.reason.message


def test_a_price_of_awss_list_is_what_the_caps_count(aws: AwsCloud, fast_path: Path) -> None:
    aws.pools = [{key: value for key, value in POOL.items() if key != "usd_per_hour"}]
    aws.controls.list_prices = {("g5.xlarge", "us-east-1"): "0.8500000000"}
    world = busy(aws, fast_path)

    world.run(60, until=world.has_burst)

    assert [row.offer.usd_per_hour for row in world.rows()] == [0.85]
    assert aws.controls.count("GetProducts") == 1


def test_a_lost_answer_rents_one_machine(world: AwsWorld) -> None:
    world.ec2.cloud.controls.fail("RunInstances", is_after=True, is_dropped=True)

    world.run(60, until=world.has_burst)

    assert len(world.zones()) == 1
    assert len(world.rows()) == 1


@pytest.mark.parametrize("number", range(2))
def test_a_crash_around_a_launch_rents_one_machine(world: AwsWorld, number: int) -> None:
    """Before or after the create call."""
    crashes = iter(range(number + 1))

    def crash(point: Point) -> None:
        if (point.who, point.call) == ("aws", "launch") and next(crashes, None) == number:
            raise Crash

    world.tracer.hook = crash
    with pytest.raises(Crash):
        world.run(60)
    world.tracer.hook = None
    world.boot()

    world.run(60, until=world.has_burst)

    assert len(world.zones()) == 1
    assert len({machine.token for machine in world.machines()}) == 1


def test_a_machine_whose_controller_is_gone_ends_itself(world: AwsWorld) -> None:
    world.ray.submit(1, GPU, 3_000.0)
    world.run(40)
    assert world.ec2.cloud.controls.count("CreateTags") >= 1  # renewed at least once
    assert world.ec2.alive()
    world.may_kill_busy = True

    world.sleep(world.params.lease_s + SHUTDOWN_AFTER_S + 1)

    assert world.ec2.alive() == []


def test_a_spot_instance_taken_back_is_rented_again(world: AwsWorld) -> None:
    world.run(60, until=world.has_burst)
    (first,) = world.ec2.instances()
    world.ec2.cloud.emulator.moto.take_back(first.id)

    world.run(60, until=lambda: len(world.zones()) == 1)

    ended, new = world.rows()
    assert ended.state is S.TERMINATED
    assert ended.problem.startswith("Server.SpotInstanceTermination")
    assert new.instance_id != ended.instance_id
