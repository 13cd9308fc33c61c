"""The controller's own loop rents in the emulated Google Cloud, on a virtual clock."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.models import CloudInstance, InstanceState, LaunchSpec, Offer
from hybrid.core.ports import Ledger, ProviderContext
from providers.gcp import GcpProvider, make
from providers.gcp.naming import instance_name
from tests.emulators.gcp import PROJECT
from tests.providers.gcp_cloud import POOL, TYPE, ZONE, GcpCloud, gcp_cloud
from tests.world.cloud import Machine
from tests.world.fixtures import fast_path, quiet_log
from tests.world.trace import Crash, Point
from tests.world.world import Controller, World

__all__ = ["fast_path", "quiet_log"]

pytestmark = pytest.mark.slow

OTHER_ZONE = "us-central1-b"
GPU = {"GPU": 1.0}
S = InstanceState


@dataclass
class GcpInWorld:
    """The adapter, and what a world must see of the machines behind it."""

    cloud: GcpCloud
    clock: Any
    name: str = "gcp"
    calls: list[str] = field(default_factory=list)
    machines: dict[str, Machine] = field(default_factory=dict)
    _launches: dict[tuple[str, str], Machine] = field(default_factory=dict)

    def connect(self, cluster_id: str) -> None:
        """Make a new adapter, as a new process does."""
        raw = {**self.cloud.settings, "launch_wait": "0s", "pools": self.cloud.pools}
        context = ProviderContext(
            cluster_id=cluster_id, cluster_name="x", state_dir="", ray_dir="", clock=self.clock
        )
        self.provider: GcpProvider = make("gcp", raw, context)

    # --- the port -------------------------------------------------------------------------

    @property
    def list_lag_s(self) -> float:
        return self.provider.list_lag_s

    def offers(self) -> Sequence[Offer]:
        return self.provider.offers()

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        self.calls.append("launch")
        self._note(offer, spec, token, join_token)
        return self.provider.launch(offer, spec, token=token, join_token=join_token)

    def launch_gang(
        self,
        offer: Offer,
        specs: Sequence[LaunchSpec],
        *,
        token: str,
        join_tokens: Mapping[str, str],
    ) -> Mapping[str, str]:
        self.calls.append("launch_gang")
        for spec in specs:
            self._note(offer, spec, token, join_tokens[spec.instance_id])
        return self.provider.launch_gang(offer, specs, token=token, join_tokens=join_tokens)

    def _note(self, offer: Offer, spec: LaunchSpec, token: str, join_token: str) -> None:
        self._launches[token, spec.instance_id] = Machine(
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

    def list_instances(self) -> Sequence[CloudInstance]:
        return self.provider.list_instances()

    def terminate(self, provider_ids: Collection[str]) -> None:
        self.provider.terminate(provider_ids)

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        self.provider.extend(provider_ids, until_s=until_s)

    # --- the world's side -----------------------------------------------------------------

    def booted(self) -> list[Machine]:
        return [self._machine(i) for i in self._instances() if i["status"] == "RUNNING"]

    def alive(self) -> list[Machine]:
        return [self._machine(i) for i in self._instances() if i["status"] != "TERMINATED"]

    def _instances(self) -> list[dict[str, Any]]:
        with self.cloud.emulator.cloud.lock:
            self.cloud.emulator.cloud.settle()
            return list(self.cloud.emulator.cloud.instances.values())

    def _machine(self, instance: dict[str, Any]) -> Machine:
        """Return a machine, known by Google's number, so that a second one is another."""
        if instance["id"] not in self.machines:
            name = instance["name"]
            found = [m for m in self._launches.values() if _name_of(m.spec) == name]
            self.machines[instance["id"]] = found[-1]
        return self.machines[instance["id"]]


def _name_of(spec: LaunchSpec) -> str:
    return instance_name(spec.cluster_id, spec.instance_id, spec.attempt)


@dataclass
class GcpWorld(World):
    """A world whose only cloud is the emulated one."""

    gcp: GcpCloud | None = None
    rented: GcpInWorld | None = None

    def _make(self, ledger: Ledger) -> Controller:
        assert self.gcp is not None
        if self.rented is None:
            self.rented = GcpInWorld(self.gcp, self.clock)
            self.clouds = {"gcp": self.rented}  # type: ignore[dict-item]  # all a world needs
        self.rented.connect(ledger.cluster_id)
        return super()._make(ledger)


@pytest.fixture
def world(fast_path: Path) -> Iterator[GcpWorld]:
    with gcp_cloud() as cloud:
        cloud.pools = [POOL, POOL | {"infra": f"gcp/us-central1/{OTHER_ZONE}", "usd_per_hour": 0.9}]
        state = cloud.emulator.cloud
        state.provision_s, state.delete_s, state.metadata_s = 20.0, 5.0, 0.0
        cloud.emulator.api.wait_s = 0.0  # time stands still meanwhile
        cloud.emulator.api.needs_token = False  # its times are not this machine's
        made = GcpWorld(fast_path, gcp=cloud, step_s=5.0)
        state.clock = made.clock.true_s
        yield made


def overflow(world: World) -> None:
    """Send one task more than the two hosts of four GPUs can hold."""
    world.ray.submit(9, GPU, 300.0)


def zones(world: GcpWorld) -> list[str]:
    assert world.gcp is not None
    return [zone for _, zone, _ in world.gcp.emulator.cloud.instances]


def emulated(world: GcpWorld) -> GcpCloud:
    assert world.gcp is not None
    return world.gcp


def test_a_burst_comes_and_goes(world: GcpWorld) -> None:
    overflow(world)

    world.run(120, until=lambda: [row.state for row in world.rows()] == [S.RUNNING])
    first = zones(world)
    world.run(600, until=world.is_quiet)

    assert first == [ZONE]
    world.assert_nothing_left()
    assert emulated(world).names() == []


def test_a_zone_without_stock_is_left_for_the_next_although_it_says_so_late(
    world: GcpWorld,
) -> None:
    emulated(world).sell_out()
    overflow(world)

    world.run(200, until=lambda: S.RUNNING in {row.state for row in world.rows()})

    lost, kept = world.rows()
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in lost.problem
    assert zones(world) == [OTHER_ZONE]
    assert kept.offer.zone == OTHER_ZONE
    assert emulated(world).calls("instances.insert") <= 4
    world.run(600, until=world.is_quiet)


def test_a_stockout_of_what_no_list_ever_had_is_left_too(world: GcpWorld) -> None:
    emulated(world).emulator.cloud.is_listed_early = False
    emulated(world).sell_out()
    overflow(world)

    world.run(300, until=lambda: S.RUNNING in {row.state for row in world.rows()})

    assert zones(world) == [OTHER_ZONE]
    assert len(world.rows()) == 2


def test_a_lease_is_renewed_and_ends_a_machine_whose_controller_is_gone(world: GcpWorld) -> None:
    overflow(world)
    world.run(120, until=lambda: [row.state for row in world.rows()] == [S.RUNNING])
    renewed = emulated(world).calls("instances.setMetadata")
    world.run(150)

    assert emulated(world).calls("instances.setMetadata") > renewed
    world.may_kill_busy = True
    world.sleep(world.params.lease_s + 60)
    (instance,) = emulated(world).emulator.cloud.instances.values()
    assert instance["status"] == "TERMINATED"  # off, and its disk waits for somebody
    world.boot()
    world.run(120, until=lambda: emulated(world).names() == [])


def test_a_gang_is_rented_in_one_call_and_comes_and_goes_whole(world: GcpWorld) -> None:
    world.ray.submit(8, GPU, 300.0)
    world.ray.submit_gang("pg-1", 2, GPU, 60.0)

    world.run(200, until=lambda: [row.state for row in world.rows()] == [S.RUNNING] * 2)
    first = zones(world)
    world.run(900, until=world.is_quiet)

    assert first == [ZONE] * 2
    assert emulated(world).calls("instances.insert") == 0
    assert len(emulated(world).emulator.cloud.operations.of("bulkInsert")) == 1
    world.assert_nothing_left()
    assert emulated(world).names() == []


@pytest.mark.parametrize("looks_first", [True, False], ids=["at-once", "late"])
def test_a_zone_with_too_few_for_a_gang_is_left_for_the_next(
    world: GcpWorld, looks_first: bool
) -> None:
    emulated(world).leave(1)
    emulated(world).emulator.cloud.looks_first = looks_first
    world.ray.submit(8, GPU, 300.0)
    world.ray.submit_gang("pg-1", 2, GPU, 60.0)

    def has_gang() -> bool:
        return [row.state for row in world.rows()].count(S.RUNNING) == 2

    world.run(300, until=has_gang)

    assert zones(world) == [OTHER_ZONE] * 2
    world.run(900, until=world.is_quiet)
    world.assert_nothing_left()


@pytest.mark.parametrize("number", range(4))
def test_a_crash_around_a_launch_rents_one_machine(world: GcpWorld, number: int) -> None:
    """Before or after the first create call, or the second, of one intent."""
    crashes = iter(range(number + 1))
    if number > 1:  # in no list, so that the create call is repeated
        emulated(world).emulator.cloud.list_lag_s = 30.0

    def crash(point: Point) -> None:
        if (point.who, point.call) == ("gcp", "launch") and next(crashes, None) == number:
            raise Crash

    overflow(world)
    world.tracer.hook = crash
    with pytest.raises(Crash):
        world.run(60)
    world.tracer.hook = None
    world.boot()

    world.run(200, until=lambda: S.RUNNING in {row.state for row in world.rows()})

    assert len(emulated(world).names()) == 1
    assert len({m.token for m in world.machines()}) == len(world.machines()) == 1
    world.run(600, until=world.is_quiet)
    world.assert_nothing_left()


@pytest.mark.parametrize("number", range(4))
def test_a_crash_around_a_gangs_launch_rents_it_once(world: GcpWorld, number: int) -> None:
    crashes = iter(range(number + 1))
    if number > 1:  # in no list, so that the create call is repeated
        emulated(world).emulator.cloud.list_lag_s = 30.0

    def crash(point: Point) -> None:
        if (point.who, point.call) == ("gcp", "launch_gang") and next(crashes, None) == number:
            raise Crash

    world.ray.submit(8, GPU, 300.0)
    world.ray.submit_gang("pg-1", 2, GPU, 60.0)
    world.tracer.hook = crash
    with pytest.raises(Crash):
        world.run(60)
    world.tracer.hook = None
    world.boot()

    world.run(200, until=lambda: [r.state for r in world.rows()].count(S.RUNNING) == 2)

    assert len(emulated(world).names()) == 2
    assert len(emulated(world).emulator.cloud.operations.of("bulkInsert")) == 1
    world.run(900, until=world.is_quiet)
    world.assert_nothing_left()


def test_what_somebody_deletes_is_rented_again(world: GcpWorld) -> None:
    overflow(world)
    world.run(120, until=lambda: [row.state for row in world.rows()] == [S.RUNNING])
    emulated(world).emulator.cloud.instances.clear()

    world.run(300, until=lambda: [row.state for row in world.rows()][1:] == [S.RUNNING])

    assert emulated(world).names()
    assert {key[0] for key in emulated(world).emulator.cloud.instances} == {PROJECT}
    assert TYPE in str(emulated(world).emulator.cloud.instances)
