"""Gangs in one call: all instances or none (the contract's items 2, 3, 4 and 13 for a whole)."""

from __future__ import annotations

from pathlib import Path

from hybrid.core.errors import CapacityError, TransientError
from hybrid.core.models import Caps, InstanceState, Reason
from hybrid.core.policy.plan import Launch, Plan
from tests.world.clock import VirtualClock
from tests.world.world import World, make_offer, make_params, two_clouds

WHOLE_NODE = {"GPU": 4.0}
S = InstanceState
REASON = Reason(code="queue_wait", message="a plan")


def make_world(folder: Path, *, max_gang: int = 4, size: int = 4) -> World:
    """Return a world whose gang finds no place at home, so that it needs `size` instances."""
    world = World(folder, offers=[make_offer(max_gang=max_gang), two_clouds()[1]])
    world.ray.submit(8, {"GPU": 1.0}, 900.0)
    world.ray.submit_gang("pg-1", size, WHOLE_NODE, 200.0)
    return world


def calls(world: World, cloud: str = "sim") -> list[str]:
    return [call for call in world.clouds[cloud].calls if call.startswith("launch")]


def test_a_gang_is_rented_in_one_call_and_runs(fast_path: Path) -> None:
    world = make_world(fast_path)

    world.run(200, until=lambda: any(t.gang and t.node_id for t in world.ray.tasks))

    assert calls(world) == ["launch_gang"]
    assert len(world.machines()) == 4
    gang = world.rows()[0].spec.gang
    assert sorted(gang) == sorted(row.instance_id for row in world.rows())
    assert {row.spec.gang for row in world.rows()} == {gang}


class TickingClock(VirtualClock):
    """A clock of which no two readings are the same, as of any real one."""

    def monotonic_s(self) -> float:
        self.advance(1e-6)
        return super().monotonic_s()


def test_the_machines_of_a_gang_are_asked_for_alike_but_for_their_ids(fast_path: Path) -> None:
    """One call of a cloud says it once for all of them."""
    world = World(fast_path, offers=[make_offer(max_gang=4)], clock=TickingClock())
    world.ray.submit_gang("pg-1", 3, WHOLE_NODE, 200.0)

    world.run(60, until=lambda: bool(world.machines()))

    specs = [row.spec for row in world.rows()]
    own = {"instance_id": "", "tags": {}}
    assert len(specs) == 3
    assert len({spec.model_copy(update=own).model_dump_json() for spec in specs}) == 1


def test_a_cloud_with_too_few_rents_none_and_the_next_offer_takes_all(fast_path: Path) -> None:
    world = make_world(fast_path, size=3)
    world.cloud.launch_faults = [CapacityError("two left", provider="sim")]

    world.run(60, until=lambda: bool(world.machines()))

    assert world.clouds["sim"].machines == {}, "nothing is paid for a part of a gang"
    assert calls(world) == ["launch_gang"]
    refused = [row for row in world.rows() if row.offer.provider == "sim"]
    assert [row.state for row in refused] == [S.FAILED] * 3
    assert calls(world, "other") == ["launch"] * 3, "its offers know no gangs"


def test_an_offer_that_rents_fewer_at_once_is_asked_one_by_one(fast_path: Path) -> None:
    world = make_world(fast_path, max_gang=3)

    world.run(60, until=lambda: len(world.machines()) == 4)

    assert calls(world) == ["launch"] * 4


def test_a_lost_answer_is_asked_again_for_the_whole(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.launch_faults = ["lost"]
    world.cloud.hide_lists, world.cloud.list_lag_s = 100, 100.0

    world.run(60, until=lambda: [r.state for r in world.rows()] == [S.BOOTING] * 4)

    assert calls(world) == ["launch_gang"] * 2
    assert len(world.machines()) == 4
    assert {r.provider_id for r in world.rows()} == set(world.cloud.machines)


def test_a_member_that_the_list_showed_meanwhile_keeps_its_state(fast_path: Path) -> None:
    """The answer is lost, and two of four machines are listed before the call is repeated."""
    world = make_world(fast_path)
    world.cloud.launch_faults = ["lost", TransientError("no answer", provider="sim")]
    world.cloud.hide_lists, world.cloud.list_lag_s = 100, 100.0
    world.run(60, until=lambda: bool(world.machines()))
    first, second, *_ = world.machines()
    first.hidden_lists = second.hidden_lists = 0

    world.run(60, until=lambda: all(row.state is S.BOOTING for row in world.rows()))

    assert len(world.machines()) == 4
    assert {r.provider_id for r in world.rows()} == set(world.cloud.machines)


def test_a_gang_with_a_member_that_has_ended_is_not_asked_for_again(fast_path: Path) -> None:
    """The same call needs all rows; what it rented is found by the list, or was never there."""
    world = make_world(fast_path)
    world.cloud.launch_faults = ["lost", *[TransientError("no", provider="sim")] * 2]
    world.run(60, until=lambda: bool(world.machines()))
    world.cloud.kill(world.machines()[0])

    world.run(300, until=lambda: any(t.gang and t.node_id for t in world.ray.tasks))

    assert len(world.alive()) <= 4


def test_a_gang_that_no_longer_fits_a_cap_is_not_begun(fast_path: Path) -> None:
    """The policy saw room for it; the ledger's word is the last."""
    world = make_world(fast_path)
    world.run(3)
    world.params = make_params().model_copy(update={"caps": Caps(node_count=3)})
    world.boot()
    offer = make_offer(max_gang=4)
    launches = tuple(Launch(offer=offer, reason=REASON, gang=1) for _ in range(4))
    world.step()

    world.loop.actor.carry_out(Plan(actions=launches))

    assert calls(world) == []
    assert world.machines() == []
    assert [row.state for row in world.rows()] == [S.FAILED] * 3
    assert "launch_capped" in world.kinds()
    world.step()
    assert world.loop.commitment.node_count == 0


def test_two_gangs_of_one_plan_are_two_calls(fast_path: Path) -> None:
    world = make_world(fast_path, size=2)
    world.ray.submit_gang("pg-2", 2, WHOLE_NODE, 200.0)

    world.run(60, until=lambda: len(world.machines()) == 4)

    assert calls(world) == ["launch_gang"] * 2


def test_a_refusal_after_a_lost_answer_proves_nothing_for_all(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.launch_faults = ["lost", CapacityError("sold out", provider="sim")]
    world.cloud.hide_lists, world.cloud.list_lag_s = 15, 20.0

    world.run(60, until=lambda: bool(world.machines()))
    world.run(5)

    assert {row.state for row in world.rows()[:4]} == {S.LOST}
    world.run(300, until=lambda: all(row.is_ended for row in world.rows()[:4]))
    assert {row.state for row in world.rows()[:4]} == {S.TERMINATED}
