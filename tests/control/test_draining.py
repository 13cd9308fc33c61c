"""Scale-in: ask Ray, believe its word, enforce the deadline, never kill work before it.

Items 8, 22, 23, 29 and 37 of the reliability contract. `World` itself fails the test when a busy
node ends before the deadline of its drain.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from hybrid.core.models import InstanceState
from hybrid.core.ports import DrainKind, Mode
from hybrid.core.views import Alarm
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, quick_params
from tests.world.ray import SimNode, Task, all_done
from tests.world.trace import Crash, Point
from tests.world.world import World, make_params

GPU = {"GPU": 1.0}
S = InstanceState


def make_world(folder: Path, *, lasts_s: float = 60.0, **policy: object) -> World:
    """Return a world with one rented node at work."""
    world = World(folder, params=make_params(**policy))
    world.ray.submit(8, GPU, 10_000.0)
    world.ray.submit(4, GPU, lasts_s)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    return world


def make_quick_world(folder: Path) -> World:
    """Return the same with steps of five seconds, for tests with many or long histories."""
    folder.mkdir(exist_ok=True)
    world = World(folder, params=quick_params(), step_s=STEP_S, store=MemoryStore())
    world.cloud.boot_s = 10.0
    world.ray.submit(8, GPU, 10_000.0)
    world.ray.submit(4, GPU, 25.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    return world


def node_of(world: World) -> SimNode:
    return next(n for n in world.ray.nodes.values() if n.instance_id and not n.is_dead)


def land(world: World) -> None:
    """Let two tasks land on whatever node is free."""
    world.ray.submit(2, GPU, 50.0)
    world.ray.step()


def states(world: World) -> list[str]:
    return [row.state.value for row in world.rows()]


def run_to_drain(world: World) -> int:
    """Run to the tick that starts a drain; return the number of its first point."""
    for _ in range(300):
        start = world.tracer.count
        world.step()
        if "instance_draining" in world.kinds():
            return start
    raise AssertionError("nothing was drained")


@pytest.mark.slow
def test_work_that_lands_at_any_point_of_the_drain_is_not_killed(fast_path: Path) -> None:
    """Item 22: a task lands at each interleaving of decision, drain and termination."""
    first = make_quick_world(fast_path / "first")
    start = run_to_drain(first)
    first.run(20, until=first.is_quiet)
    end = first.tracer.count
    refused = 0

    for number in range(start, end):
        world = make_quick_world(fast_path / str(number))
        world.tracer.at(number, partial(land, world))
        world.run(400, until=lambda: len(world.ray.tasks) > 12)  # noqa: B023 - used at once
        late = world.ray.tasks[12:]
        world.run(400, until=all_done(late))
        world.run(400, until=world.is_quiet)

        assert all(t.deaths == 0 for t in late)
        assert world.ray.killed_busy == []
        refused += any(e.message.startswith("Ray: ") for e in world.ledger.events(limit=10_000))
        world.ledger.close()

    assert refused, "at some point Ray must have refused, or the test proves nothing"


def test_a_refused_drain_makes_the_node_as_good_as_before(fast_path: Path) -> None:
    world = make_world(fast_path)
    late: list[Task] = []

    def land(point: Point) -> None:
        if point.call == "drain" and not point.is_after and not late:
            late.extend(world.ray.submit(1, GPU, 100.0))
            world.ray.step()

    world.tracer.hook = land
    world.run(300, until=lambda: bool(late))

    row = world.row()
    assert (row.state, row.drain_kind, row.deadline_at_s) == (S.RUNNING, "", None)
    assert row.problem == "Ray: the node is no longer idle"


@pytest.mark.parametrize("pause_s", [0, 5, 30, 120])
@pytest.mark.parametrize("call", ["save", "drain"])
def test_a_crash_in_the_middle_of_a_drain_kills_no_work_that_came_meanwhile(
    fast_path: Path, call: str, pause_s: float
) -> None:
    world = make_world(fast_path)

    def crash(point: Point) -> None:
        is_draining = any(r.state is S.DRAINING for r in world.rows())
        if is_draining and point.call == call and point.is_after == (call == "save"):
            raise Crash

    world.tracer.hook = crash
    with pytest.raises(Crash):
        world.run(400)
    world.tracer.hook = None
    late = world.ray.submit(4, GPU, 300.0)
    world.sleep(pause_s)
    world.boot()
    world.run(5)

    assert states(world) == ["running"]
    world.run(600, until=all_done(late))
    assert all(t.deaths == 0 for t in late)


def test_a_drain_that_ray_never_answers_ends_nothing_that_works(fast_path: Path) -> None:
    """Ray is deaf to drains, and work lands: the node goes on."""
    world = make_world(fast_path)
    world.ray.is_deaf = True
    run_to_drain(world)
    late = world.ray.submit(4, GPU, 500.0)
    world.run(60)

    assert world.row().state is S.RUNNING
    assert not world.row().is_ended
    world.ray.is_deaf = False
    world.run(600, until=all_done(late))
    world.run(600, until=world.is_quiet)
    assert all(t.deaths == 0 for t in late)


def test_a_lost_answer_of_a_drain_is_asked_again(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.ray.answers_get_lost = True

    world.run(400, until=world.is_quiet)

    assert world.row().state is S.TERMINATED


def test_ray_silent_means_no_scale_in_and_no_launch(fast_path: Path) -> None:
    """Item 8: unknown is not idle. Leases are renewed meanwhile."""
    world = make_quick_world(fast_path)
    world.ray.is_silent = True
    launches = world.calls("launch")
    world.ray.submit(20, GPU, 5000.0)

    world.run(3600)

    assert states(world) == ["running"]
    assert len(world.alive()) == 1
    assert world.calls("launch") == launches
    world.ray.is_silent = False
    world.run(2)
    assert states(world)[0] == "running"


def test_a_node_that_joined_while_ray_was_silent_is_not_ended_for_being_late(
    fast_path: Path,
) -> None:
    world = World(fast_path)
    tasks = world.ray.submit(12, GPU, 300.0)
    world.run(60, until=lambda: bool(world.machines()))
    world.ray.is_silent = True
    world.run(world.params.deadlines.join_s + 60)
    assert states(world) == ["booting"]

    world.ray.is_silent = False
    world.run(3)

    assert states(world) == ["running"]
    world.run(600, until=all_done(tasks))
    assert all(t.deaths == 0 for t in tasks)


def test_ray_silent_for_longer_than_an_idle_drain_may_take_kills_nothing(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.ray.is_deaf = True
    run_to_drain(world)
    world.ray.is_deaf, world.ray.is_silent = False, True
    late = world.ray.submit(4, GPU, 500.0)

    world.run(300)
    assert states(world) == ["draining"]
    world.ray.is_silent = False
    world.run(3)

    assert states(world) == ["running"]
    assert all(t.node_id == node_of(world).node_id for t in late)


def test_the_deadline_of_a_busy_drain_is_enforced_by_us(fast_path: Path) -> None:
    """Item 23: Ray does not enforce it (measured); a crash does not move it."""
    world = make_world(fast_path, lasts_s=10_000.0)
    world.desk.drain("i-0001", deadline_s=50.0, owner="test")
    asked_s = world.clock.monotonic_s()
    world.run(20)
    world.boot()

    world.run(100, until=lambda: not world.alive())

    assert 50.0 <= world.clock.monotonic_s() - asked_s <= 53.0
    assert world.ray.killed_busy == ["i-0001"]


def test_a_drained_node_that_becomes_idle_ends_before_the_deadline(fast_path: Path) -> None:
    world = make_world(fast_path, lasts_s=30.0)
    world.desk.drain("i-0001", deadline_s=500.0, owner="test")

    used_s = world.run(100, until=lambda: not world.alive())

    assert used_s < 60
    assert world.ray.killed_busy == []


def test_busy_work_comes_home_only_when_asked_and_by_its_deadline(fast_path: Path) -> None:
    world = World(fast_path, params=make_params(busy_drain="come_home"))
    world.ray.submit(8, GPU, 70.0)
    world.ray.submit(4, GPU, 10_000.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))

    world.run(400, until=world.is_quiet)

    assert world.ray.drains == [("i-0001", "busy")]
    assert world.ray.killed_busy == ["i-0001"], "after the whole deadline of 100 s"
    assert all(t.deaths <= 1 for t in world.ray.tasks)


def test_a_termination_that_the_cloud_refuses_is_asked_again(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.failing = {"terminate"}
    world.run(300, until=lambda: states(world) == ["terminating"])
    world.run(100)
    assert len(world.alive()) == 1
    assert any(a.code == "stuck_terminating" for a in _alarms(world))
    tries = world.calls("terminate")
    assert 3 < tries < 60, "again and again, and less and less often"

    world.cloud.failing = set()
    world.run(100, until=world.is_quiet)


@pytest.mark.slow
def test_pausing_in_the_middle_of_a_tick_stops_the_next_drain(fast_path: Path) -> None:
    """Item 29: `pause in` and dry-run are read at each mutation."""
    first = make_quick_world(fast_path / "first")
    start = run_to_drain(first)
    end = first.tracer.count
    for mode in (Mode(is_in_paused=True), Mode(is_dry_run=True)):
        calls = ("drain", "terminate") if mode.is_dry_run else ("drain",)
        for number in range(start, end):
            world = make_quick_world(fast_path / f"{number}-{mode.is_dry_run}")
            world.tracer.is_recording = True
            world.tracer.at(number, partial(world.ledger.set_mode, mode))
            while world.tracer.count <= number + 1:
                world.step()
            world.run(40)

            assert world.tracer.later_calls(number, *calls) == []
            world.ledger.set_mode(Mode())
            world.run(400, until=world.is_quiet)
            world.ledger.close()


def test_a_drain_that_was_paused_before_ray_heard_of_it_is_rolled_back(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.ray.is_deaf = True
    run_to_drain(world)
    world.desk.pause("in", owner="ann")
    world.ray.is_deaf = False

    world.run(2)

    assert world.row().state is S.RUNNING
    assert world.row().problem == "scale-in was paused by ann"


def test_an_operators_drain_goes_on_in_spite_of_a_pause(fast_path: Path) -> None:
    world = make_world(fast_path, lasts_s=1000.0)
    world.desk.pause("in", owner="ann")
    world.desk.drain("i-0001", deadline_s=30.0, owner="ann")

    world.run(100, until=world.is_quiet)


def test_an_overdue_instance_ends_in_spite_of_a_pause(fast_path: Path) -> None:
    world = make_world(fast_path, lasts_s=1000.0)
    world.desk.drain("i-0001", deadline_s=30.0, owner="ann")
    world.run(5)
    world.desk.pause("all", owner="ann")

    world.run(100, until=world.is_quiet)


def test_dry_run_changes_nothing_but_keeps_what_lives(fast_path: Path) -> None:
    world = make_quick_world(fast_path)
    world.desk.pause("dry-run", owner="ann")
    world.ray.submit(12, GPU, 5000.0)
    calls = world.calls("launch"), world.calls("terminate"), list(world.ray.drains)

    world.run(1500)

    assert (world.calls("launch"), world.calls("terminate"), world.ray.drains) == calls
    assert len(world.alive()) == 1, "its lease was renewed"
    assert world.loop.plan.summary
    assert world.kinds().count("plan_made") < 10, "the same plan is not told in every tick"


def test_a_node_that_dies_at_work_is_closed_and_its_place_is_freed(fast_path: Path) -> None:
    """Kill -9 of the raylet: Ray retries the tasks, we end the machine."""
    world = make_world(fast_path, lasts_s=200.0)
    world.ray.kill(node_of(world))

    world.run(20, until=lambda: world.row().is_ended)

    assert world.row().problem
    assert world.loop.commitment.node_count <= 1


def _alarms(world: World) -> list[Alarm]:
    world.desk.publish()
    return list(world.desk.status().alarms)


def test_start_drain_makes_a_drain_shorter_and_never_longer(fast_path: Path) -> None:
    world = make_world(fast_path)
    run_to_drain(world)
    row, now_s = world.row(), world.clock.now_s()
    assert row.deadline_at_s is not None

    for deadline_at_s in (row.deadline_at_s + 100, row.deadline_at_s):
        world.loop.actor.start_drain(
            row, kind=DrainKind.BUSY, deadline_at_s=deadline_at_s, reason=row.reason
        )
        assert world.row() == row

    world.loop.actor.start_drain(
        row, kind=DrainKind.BUSY, deadline_at_s=now_s + 1, reason=row.reason
    )
    assert world.row().deadline_at_s == now_s + 1
    assert world.kinds()[-1] == "drain_shortened"


def test_a_node_that_drains_unasked_is_taken_back_and_replaced(fast_path: Path) -> None:
    """A spot notice: the node asked Ray itself, and its cloud ends the machine a while later."""
    world = make_world(fast_path, lasts_s=500.0)
    node = node_of(world)
    row = world.row()

    node.is_draining = True
    world.step()

    [leaving] = [r for r in world.rows() if r.instance_id == row.instance_id]
    assert leaving.state is S.DRAINING
    assert leaving.drain_reason is not None
    assert leaving.drain_reason.code == "interrupted"
    assert world.ray.drains == [], "its own deadline must not be replaced by ours"
    world.run(60)
    world.may_kill_busy = True
    world.cloud.kill(world.machines()[0], "spot interruption")
    world.run(100)
    assert [r.state for r in world.rows()] == [S.TERMINATED, S.RUNNING]


def test_a_node_that_drains_unasked_is_not_ended_early(fast_path: Path) -> None:
    world = make_world(fast_path, lasts_s=80.0, drain_s=100.0)
    node_of(world).is_draining = True

    world.run(300, until=world.is_quiet)

    assert world.ray.killed_busy == []
    assert all(task.deaths == 0 for task in world.ray.tasks)
