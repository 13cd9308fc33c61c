"""What ends, what must not, and what is proved: lists, leases, orphans, silent clouds.

Items 6, 7, 8, 11, 19, 30 and 36 of the reliability contract.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.control.commands import RefusedError
from hybrid.core.lifecycle import ENDED
from hybrid.core.models import InstanceState
from tests.world.cloud import Machine
from tests.world.quick import STEP_S, quick_params
from tests.world.trace import Point
from tests.world.world import World, make_offer, stranger_spec, two_clouds

GPU = {"GPU": 1.0}
S = InstanceState


def make_world(folder: Path, *, lasts_s: float = 5000.0, **changes: object) -> World:
    """Return a world with one rented node at work."""
    world = World(folder, params=quick_params(**changes), step_s=STEP_S)
    world.cloud.boot_s = 10.0
    start_work(world, lasts_s=lasts_s)
    return world


def start_work(world: World, *, lasts_s: float = 5000.0) -> None:
    world.ray.submit(8, GPU, 50_000.0)
    world.ray.submit(4, GPU, lasts_s)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))


def add_stranger(world: World, *, age_s: float = 0.0, instance_id: str = "i-x") -> Machine:
    machine = world.cloud.create(make_offer(), stranger_spec(world, instance_id))
    machine.launched_at_s -= age_s
    machine.never_joins = True
    return machine


# --- item 7: missing from a list is not dead -----------------------------------------------


@pytest.mark.parametrize("hidden", [1, 2, 3, 10])
def test_a_node_that_works_is_never_lost_however_long_the_list_lacks_it(
    fast_path: Path, hidden: int
) -> None:
    world = make_world(fast_path)
    [machine] = world.machines()
    machine.hidden_lists = hidden

    world.run(hidden * STEP_S + 20)

    assert world.row().state is S.RUNNING
    assert world.calls("terminate") == 0


@pytest.mark.parametrize("hidden", [1, 2])
def test_a_booting_machine_missing_from_fewer_than_three_lists_is_not_lost(
    fast_path: Path, hidden: int
) -> None:
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.boot_s = 30.0
    world.cloud.hide_lists = hidden
    world.ray.submit(12, GPU, 500.0)
    world.run(100, until=lambda: bool(world.machines()))

    world.run(40, until=lambda: world.row().state is S.RUNNING)

    assert world.kinds().count("instance_lost") == 0
    assert len(world.machines()) == 1


def test_a_machine_missing_for_longer_is_lost_keeps_its_place_and_is_found_again(
    fast_path: Path,
) -> None:
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.never_joins = True
    world.cloud.hide_lists = 6
    world.ray.submit(12, GPU, 500.0)
    world.run(100, until=lambda: bool(world.rows()) and world.row().state is S.LOST)

    assert world.ledger.live_instances()[0].state is S.LOST, "it still holds its reservation"
    world.run(100, until=lambda: world.row().is_ended)
    assert world.machines()[0].ended_by == "terminate"


def test_a_machine_that_vanished_is_closed_when_the_cloud_says_not_found(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.forgets_ended = True
    world.cloud.kill(world.machines()[0])
    world.ray.is_silent = True
    world.run(100)
    assert world.row().state is S.RUNNING, "Ray is silent: the node may be at work"
    world.ray.is_silent = False

    world.run(100, until=lambda: world.row().is_ended)

    assert "the cloud: no such machine" in world.row().problem


# --- item 8: a silent cloud ---------------------------------------------------------------


def test_a_silent_cloud_costs_its_own_offers_only(fast_path: Path) -> None:
    """Silent for an hour while another works: nothing ends, nothing is lost, the other serves."""
    world = World(fast_path, params=quick_params(), offers=list(two_clouds()), step_s=STEP_S)
    for cloud in world.clouds.values():
        cloud.boot_s = 10.0
    start_work(world, lasts_s=20_000.0)
    sim, other = world.clouds["sim"], world.clouds["other"]
    sim.failing = {"list", "offers", "launch", "terminate"}
    world.ray.submit(4, GPU, 20_000.0)

    world.run(3600)

    assert len(sim.alive()) == len(other.alive()) == 1
    assert {row.state for row in world.rows()} == {S.RUNNING}
    assert sim.calls.count("terminate") == 0
    assert "instance_lost" not in world.kinds()


def test_the_leases_of_a_cloud_that_is_wholly_silent_lapse_as_designed(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.is_silent = True
    world.may_kill_busy = True

    used_s = world.run(2000, until=lambda: not world.alive())

    assert used_s <= world.params.lease_s + STEP_S
    assert world.machines()[0].ended_by == "lease"
    assert world.row().state is not S.TERMINATED, "nobody has said yet that it is gone"
    world.cloud.is_silent = False
    world.run(10)
    assert world.row().state is S.TERMINATED


def test_no_node_of_a_silent_cloud_is_scaled_in(fast_path: Path) -> None:
    world = make_world(fast_path, lasts_s=30.0)
    world.cloud.failing = {"list"}

    world.run(600)

    assert world.row().state is S.RUNNING
    assert world.ray.drains == []
    world.cloud.failing = set()
    world.run(100, until=world.is_quiet)


# --- item 11: the controller dead for good ------------------------------------------------


@pytest.mark.parametrize("after_s", [0, 15, 30, 100, 400])
def test_the_cloud_is_empty_one_lease_after_the_controller_died(
    fast_path: Path, after_s: int
) -> None:
    world = make_world(fast_path, lease_s=300.0)
    world.run(after_s)

    world.sleep(300.0 + STEP_S)

    assert world.alive() == []


# --- item 6: orphans ----------------------------------------------------------------------


def test_machines_of_another_cluster_are_never_touched(fast_path: Path) -> None:
    """The provider lists ours only (its contract test proves it), so the loop sees no other."""
    world = make_world(fast_path, lasts_s=50.0)
    before = list(world.cloud.machines)

    world.run(600, until=world.is_quiet)

    assert list(world.cloud.machines) == before


def test_a_stranger_with_our_tags_is_ended_after_the_grace_and_not_before(fast_path: Path) -> None:
    """The ledger was deleted while machines ran."""
    world = make_world(fast_path, orphan_grace_s=60.0)
    stranger = add_stranger(world)

    world.run(55)
    assert world.cloud.is_alive(stranger)
    world.run(20)

    assert stranger.ended_by == "terminate"
    assert world.kinds().count("orphan_ended") == 1
    assert world.row().state is S.RUNNING


def test_an_old_stranger_is_watched_for_two_ticks_first(fast_path: Path) -> None:
    """Its row may be on its way: our own watch counts too, not only the cloud's clock."""
    world = make_world(fast_path)
    stranger = add_stranger(world, age_s=1e6)

    world.step()
    assert world.cloud.is_alive(stranger)
    world.run(15)

    assert not world.cloud.is_alive(stranger)


def test_a_stranger_from_the_future_is_ended_after_the_grace_all_the_same(fast_path: Path) -> None:
    """A wrong clock in the cloud (or here) must not keep an orphan alive."""
    world = make_world(fast_path, orphan_grace_s=60.0)
    stranger = add_stranger(world, age_s=-1e6)

    world.run(80)

    assert not world.cloud.is_alive(stranger)


def test_an_orphan_that_ends_slowly_is_one_event(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.ends_slowly_s = 200.0
    stranger = add_stranger(world, age_s=1000.0)

    world.run(400, until=lambda: not world.cloud.is_alive(stranger))

    assert world.kinds().count("orphan_ended") == 1
    assert world.calls("terminate") < 15


def test_an_orphan_that_cannot_be_ended_is_tried_less_and_less_often(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.failing = {"terminate"}
    stranger = add_stranger(world, age_s=1000.0)

    world.run(500)
    assert 3 < world.calls("terminate") < 20
    assert world.kinds().count("orphan_not_ended") == 1, "told once, tried for ever"
    world.cloud.failing = set()
    world.run(100, until=lambda: not world.cloud.is_alive(stranger))


def test_a_machine_of_an_intent_that_ended_is_ended_without_the_whole_grace(
    fast_path: Path,
) -> None:
    """A row that is closed for certain needs no grace: nothing can be on its way."""
    world = make_world(fast_path, lasts_s=20.0, orphan_grace_s=1000.0)
    name = world.row().instance_id
    world.run(300, until=world.is_quiet)
    undead = add_stranger(world, instance_id=name)

    world.step()
    assert world.cloud.is_alive(undead)
    world.run(15)

    assert not world.cloud.is_alive(undead)
    assert len(world.ledger.spends()) == 1


def test_an_orphan_that_is_gone_when_it_is_to_be_ended_is_no_trouble(fast_path: Path) -> None:
    world = make_world(fast_path)
    stranger = add_stranger(world, age_s=1000.0)
    world.run(2 * STEP_S)
    world.cloud.forgets_ended = True

    def vanish(point: Point) -> None:
        if point.call == "terminate" and not point.is_after:
            world.cloud.kill(stranger)

    world.tracer.hook = vanish
    world.run(20)

    assert "orphan_ended" not in world.kinds()
    assert "orphan_not_ended" not in world.kinds()


def test_what_is_remembered_about_ended_things_is_forgotten(fast_path: Path) -> None:
    """A controller that lives for years must not grow."""
    world = make_world(fast_path, lasts_s=20.0)
    world.run(300, until=world.is_quiet)
    world.run(20)
    loop = world.loop

    assert loop.actor.launcher._retry_at_s == {}
    assert loop.actor.launcher._untouched == set()
    assert loop.finisher._retries._tries == {}
    assert loop.finisher.orphans._since_s == {}
    assert loop.reconciler._absent_since_s == {}
    assert loop.reconciler._joining == set()


def test_of_two_machines_with_one_id_the_unknown_one_is_ended(fast_path: Path) -> None:
    world = make_world(fast_path)
    [ours] = world.machines()
    twin = add_stranger(world, age_s=1000.0, instance_id=ours.spec.instance_id)

    world.run(60)

    assert not world.cloud.is_alive(twin)
    assert world.cloud.is_alive(ours)
    assert world.row().state is S.RUNNING


def test_a_living_twin_keeps_its_row_alive_until_it_is_gone_too(fast_path: Path) -> None:
    world = make_world(fast_path)
    [ours] = world.machines()
    world.cloud.failing = {"terminate"}
    twin = add_stranger(world, age_s=1000.0, instance_id=ours.spec.instance_id)
    world.cloud.kill(ours)
    world.run(60)
    assert not world.row().is_ended

    world.cloud.failing = set()
    world.run(120, until=lambda: world.row().is_ended)

    assert not world.cloud.is_alive(twin)


def test_gc_shows_and_ends_orphans_on_demand(fast_path: Path) -> None:
    world = make_world(fast_path, orphan_grace_s=1000.0)
    add_stranger(world, age_s=2000.0)

    dry = world.desk.gc(is_dry_run=True)
    assert [(i.instance_id, i.verdict, i.is_terminated) for i in dry.items] == [
        ("i-x", "young", False)
    ]
    world.clock.advance(20)
    dry = world.desk.gc(is_dry_run=True)
    assert [(i.verdict, i.is_terminated) for i in dry.items] == [("orphan", False)]
    wet = world.desk.gc(is_dry_run=False)

    assert [(i.verdict, i.is_terminated) for i in wet.items] == [("orphan", True)]
    assert world.desk.gc(is_dry_run=False).items == ()


def test_gc_ends_nothing_under_dry_run_and_names_what_it_cannot_read(fast_path: Path) -> None:
    world = make_world(fast_path)
    stranger = add_stranger(world, age_s=2000.0)
    world.desk.pause("dry-run", owner="ann")
    world.desk.gc(is_dry_run=True)
    world.clock.advance(60)

    with pytest.raises(RefusedError, match="dry-run is on"):
        world.desk.gc(is_dry_run=False)

    assert world.cloud.is_alive(stranger)
    world.cloud.failing = {"list"}
    view = world.desk.gc(is_dry_run=True)
    assert [s.name for s in view.unreadable] == ["provider:sim"]
    assert view.items == ()


# --- item 19: every transient state has a way out -------------------------------------------


@pytest.mark.parametrize("state", [s for s in S if s not in ENDED and s is not S.RUNNING])
def test_each_transient_state_is_left_by_itself(fast_path: Path, state: InstanceState) -> None:
    """Put a row into a state without anything behind it, let time pass, and it ends."""
    world = make_world(fast_path)
    template = world.row()
    row = template.model_copy(
        update={
            "instance_id": "i-odd",
            "state": S.REQUESTED,
            "provider_id": "",
            "node_id": "",
            "first_listed_at_s": None,
            "joined_at_s": None,
            "deadline_at_s": world.clock.now_s() + 30,
            "state_at_s": world.clock.now_s(),
            "created_at_s": world.clock.now_s(),
        }
    )
    world.cloud.failing = {"launch"}
    world.loop.book.add(row, caps=world.params.caps, exit_s=0.0)
    deadline_at_s = None if state is S.LOST else world.clock.now_s() + 30
    world.loop.book.note(row, state=state, deadline_at_s=deadline_at_s)

    for _ in range(200):
        world.step()
        if world.ledger.instance("i-odd").is_ended:  # type: ignore[union-attr]
            break

    odd = world.ledger.instance("i-odd")
    assert odd is not None
    assert odd.is_ended, f"stuck in {odd.state}: {odd.problem}"


# --- item 30: hosts and the head cannot be ended --------------------------------------------


def test_no_verb_ends_a_host_or_the_head(fast_path: Path) -> None:
    world = make_world(fast_path, lasts_s=50.0)
    world.run(600, until=world.is_quiet)
    homes = [n for n in world.ray.nodes.values() if not n.instance_id]

    world.run(600)

    assert len(homes) == 3
    assert not any(node.is_dead or node.is_draining for node in homes)
    assert world.head.stops == 0


def test_the_only_verbs_of_a_host_are_join_leave_and_probe() -> None:
    from hybrid.core.ports import Fleet

    verbs = {name for name in vars(Fleet) if not name.startswith("_")}

    assert verbs == {"hosts", "join", "leave", "probe"}


# --- item 36: a provider that is no longer configured ---------------------------------------


def test_instances_of_a_removed_provider_are_never_marked_gone(fast_path: Path) -> None:
    world = World(fast_path, params=quick_params(), offers=list(two_clouds()), step_s=STEP_S)
    world.clouds["sim"].boot_s = 10.0
    start_work(world, lasts_s=20.0)
    world.removed = {"sim"}
    world.boot()

    world.run(500)

    assert [row.state for row in world.rows()] == [S.RUNNING]
    assert world.loop.commitment.node_count == 1
    world.desk.publish()
    [alarm] = world.desk.status().alarms
    assert alarm.subject == "provider:sim"
    assert "1 instance" in alarm.what
    assert world.ray.drains == []


def test_a_provider_that_comes_back_is_served_again(fast_path: Path) -> None:
    world = World(fast_path, params=quick_params(), offers=list(two_clouds()), step_s=STEP_S)
    world.clouds["sim"].boot_s = 10.0
    start_work(world, lasts_s=20.0)
    world.removed = {"sim"}
    world.boot()
    world.run(100)
    world.removed = set()
    world.boot()

    world.run(200, until=world.is_quiet)


def test_a_booting_instance_of_a_removed_provider_waits_for_its_cloud(fast_path: Path) -> None:
    world = World(fast_path, params=quick_params(), offers=list(two_clouds()), step_s=STEP_S)
    world.clouds["sim"].never_joins = True
    world.ray.submit(12, GPU, 300.0)
    world.run(60, until=lambda: bool(world.machines()))
    world.removed = {"sim"}
    world.boot()

    world.run(300)

    assert world.row().state is S.TERMINATING
    assert world.row().problem == "its provider is no longer configured"
    world.removed = set()
    world.boot()
    world.run(100, until=lambda: world.row().is_ended)


def test_an_orphan_is_ended_though_its_clouds_list_fails_now_and_then(fast_path: Path) -> None:
    world = make_world(fast_path)
    stranger = add_stranger(world, age_s=1000.0)
    looks = 0

    def is_ended() -> bool:
        nonlocal looks
        looks += 1
        world.cloud.failing = {"list"} if looks % 3 == 0 else set()
        return not world.cloud.is_alive(stranger)

    world.run(200, until=is_ended)
