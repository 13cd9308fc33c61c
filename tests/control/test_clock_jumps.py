"""The wall clock jumps by an hour: nothing expires, nothing is launched twice, no work dies.

Item 27 of the reliability contract. `World` fails the test when a busy node ends too early; it
counts by the monotonic clock.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from hybrid.control.steady import SteadyClock
from hybrid.core.cost import commitment
from hybrid.core.errors import CapExceededError, LedgerError
from hybrid.core.models import Caps, Instance, InstanceState, OfferFailure
from tests.world.clock import VirtualClock
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, quick_params
from tests.world.ray import all_done
from tests.world.trace import Point
from tests.world.world import World

GPU = {"GPU": 1.0}
S = InstanceState
HOUR_S = 3600.0
JUMPS = [HOUR_S, -HOUR_S]
JUMP = pytest.mark.parametrize("jump_s", JUMPS, ids=["forward", "back"])


def make_world(folder: Path) -> World:
    folder.mkdir(exist_ok=True)
    world = World(folder, params=quick_params(), step_s=STEP_S, store=MemoryStore())
    world.cloud.boot_s = 10.0
    return world


def burst(world: World) -> None:
    """Play a whole burst and hold that it went as if no clock had jumped."""
    tasks = world.ray.submit(8, GPU, 100.0) + world.ray.submit(4, GPU, 40.0)
    world.run(300, until=all_done(tasks))
    world.run(300, until=world.is_quiet)
    world.assert_nothing_left()
    assert len(world.machines()) == 1
    assert all(t.deaths == 0 for t in tasks)
    assert [m.ended_by for m in world.machines()] == ["terminate"]


@pytest.mark.slow
@pytest.mark.parametrize("shares_head_clock", [True, False], ids=["local", "cloud"])
@JUMP
def test_a_jump_between_any_two_ticks_changes_nothing(
    fast_path: Path, jump_s: float, shares_head_clock: bool
) -> None:
    first = make_world(fast_path / "first")
    burst(first)

    # A cloud that is right refuses to keep a machine that a clock an hour behind asks for: its
    # expiry lies in the past. No launch works then, and nothing leaks.
    start = 7 if jump_s < 0 and not shares_head_clock else 0
    for tick in range(start, first.loop.tick_count):
        world = make_world(fast_path / str(tick))
        world.cloud.shares_head_clock = shares_head_clock
        world.jump_before = {tick: jump_s}
        burst(world)
        assert world.kinds().count("clock_jumped") == 1
        [spend] = world.ledger.spends()
        assert spend.to_s - spend.from_s < 300, "an hour that never was is not paid"
        world.ledger.close()


@pytest.mark.slow
@JUMP
def test_a_jump_at_any_point_of_a_tick_changes_nothing(fast_path: Path, jump_s: float) -> None:
    first = make_world(fast_path / "first")
    burst(first)

    for number in range(20, first.tracer.count, 3):
        world = make_world(fast_path / str(number))
        world.cloud.shares_head_clock = True
        world.tracer.at(number, partial(world.clock.jump, jump_s))
        tasks = world.ray.submit(8, GPU, 100.0) + world.ray.submit(4, GPU, 40.0)
        world.run(300, until=all_done(tasks))
        world.run(300, until=world.is_quiet)
        world.assert_nothing_left()
        assert all(t.deaths == 0 for t in tasks)
        assert len(world.machines()) <= 2, "one more when it came in the middle of a launch"
        world.ledger.close()


@JUMP
def test_the_deadline_of_a_drain_moves_with_the_clock(fast_path: Path, jump_s: float) -> None:
    world = make_world(fast_path)
    world.ray.submit(12, GPU, 5000.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    world.desk.drain("i-0001", deadline_s=200.0, owner="test")
    asked_s = world.clock.monotonic_s()
    world.run(20)

    world.clock.jump(jump_s)
    world.run(400, until=lambda: not world.alive())

    assert 200.0 <= world.clock.monotonic_s() - asked_s <= 210.0


@JUMP
def test_the_end_of_down_moves_with_the_clock(fast_path: Path, jump_s: float) -> None:
    world = make_world(fast_path)
    world.ray.submit(12, GPU, 5000.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    world.desk.close(drain_s=200.0, owner="test")
    asked_s = world.clock.monotonic_s()
    world.run(20)

    world.clock.jump(jump_s)
    world.run(400, until=lambda: world.loop.is_done)

    assert 200.0 <= world.clock.monotonic_s() - asked_s <= 215.0


@JUMP
@pytest.mark.parametrize("is_on_disk", [True, False], ids=["disk", "memory"])
def test_the_ledger_charges_for_the_same_time_as_the_book(
    fast_path: Path, jump_s: float, is_on_disk: bool
) -> None:
    """Or a cap would be found passed, or be passed, by the jump."""
    store = None if is_on_disk else MemoryStore()
    world = World(fast_path, params=quick_params(), step_s=STEP_S, store=store)
    world.ray.submit(12, GPU, 50_000.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))

    world.clock.jump(jump_s)
    world.step()

    now_s = world.clock.now_s()
    asked = world.row().model_copy(update={"instance_id": "i-2", "state": S.REQUESTED})
    with pytest.raises(CapExceededError) as refused:
        world.ledger.request(asked, caps=Caps(usd_per_day=0.0), exit_s=0.0, now_s=now_s)
    used = commitment(world.loop.book.all(), (), now_s=now_s, exit_s=0.0)
    assert f"used {used.day_usd:.6g}" in str(refused.value)


@JUMP
def test_a_resting_offer_rests_as_long_as_before(fast_path: Path, jump_s: float) -> None:
    world = make_world(fast_path)
    world.cloud.never_joins = True
    world.ray.submit(12, GPU, 5000.0)
    world.run(200, until=lambda: bool(world.ledger.failures()))
    rest_s = world.ledger.failures()[0].until_s - world.clock.now_s()

    world.clock.jump(jump_s)
    world.step()

    rest_after_s = world.ledger.failures()[0].until_s - world.clock.now_s()
    assert rest_after_s == pytest.approx(rest_s - STEP_S)


@pytest.mark.parametrize("shares_head_clock", [True, False], ids=["local", "cloud"])
@JUMP
def test_leases_are_renewed_for_hours_after_a_jump(
    fast_path: Path, jump_s: float, shares_head_clock: bool
) -> None:
    """Also when the cloud's clock is right and ours is wrong: it is never told an earlier end."""
    world = make_world(fast_path)
    world.cloud.shares_head_clock = shares_head_clock
    tasks = world.ray.submit(12, GPU, 6000.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))

    world.clock.jump(jump_s)
    world.run(7000, until=all_done(tasks))

    assert all(t.deaths == 0 for t in tasks)
    [machine] = world.machines()
    assert machine.lease_end_s - world.clock.monotonic_s() <= HOUR_S + 2 * world.params.lease_s


@JUMP
def test_work_does_not_wait_an_hour_more_or_less(fast_path: Path, jump_s: float) -> None:
    world = make_world(fast_path)
    world.params = quick_params(policy=world.params.policy.model_copy(update={"max_wait_s": 60.0}))
    world.boot()
    world.run(10)
    world.ray.submit(12, GPU, 500.0)
    world.run(20)

    world.clock.jump(jump_s)
    used_s = world.run(100, until=lambda: bool(world.machines()))

    assert 40.0 <= used_s <= 55.0


@pytest.mark.slow
@pytest.mark.parametrize("pause_s", [0.0, 60.0])
@JUMP
def test_a_jump_while_no_controller_runs_kills_no_work(
    fast_path: Path, jump_s: float, pause_s: float
) -> None:
    """Set back, rows lie in the future and are found. Set forward, it was a long absence."""
    first = make_world(fast_path / "first")
    burst(first)

    for tick in range(3, first.loop.tick_count):
        world = make_world(fast_path / str(tick))
        tasks = world.ray.submit(8, GPU, 100.0) + world.ray.submit(4, GPU, 40.0)
        for _ in range(tick):
            world.step()
        world.sleep(pause_s)
        world.clock.jump(jump_s)
        world.boot()
        world.run(400, until=all_done(tasks))
        world.run(400, until=world.is_quiet)

        world.assert_nothing_left()
        assert all(t.deaths == 0 for t in tasks)
        world.ledger.close()


def test_leases_are_renewed_after_a_jump_back_that_nobody_saw(fast_path: Path) -> None:
    world = make_world(fast_path)
    tasks = world.ray.submit(12, GPU, 3000.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    world.run(300)

    world.clock.jump(-HOUR_S)
    world.boot()
    world.run(4000, until=all_done(tasks))

    assert all(t.deaths == 0 for t in tasks)


def test_no_offer_rests_for_hours_because_the_clock_was_set_back(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.never_joins = True
    world.ray.submit(12, GPU, 5000.0)
    world.run(200, until=lambda: bool(world.ledger.failures()))

    world.clock.jump(-10 * HOUR_S)  # and nobody is there to see it
    world.boot()
    world.step()

    rest_s = world.ledger.failures()[0].until_s - world.clock.now_s()
    assert rest_s <= world.params.backoff_cap_s


def test_small_corrections_of_the_clock_are_no_jumps(fast_path: Path) -> None:
    world = make_world(fast_path)
    for _ in range(20):
        world.clock.jump(0.2)
        world.run(10)
        world.clock.jump(-0.2)
        world.run(10)

    assert "clock_jumped" not in world.kinds()


@pytest.mark.parametrize("is_after", [False, True], ids=["before-commit", "after-commit"])
@pytest.mark.parametrize("call", ["save", "save_failure", "set_mode", "append"])
@JUMP
def test_a_jump_is_moved_once_although_a_write_fails_in_the_middle(
    fast_path: Path, jump_s: float, call: str, is_after: bool
) -> None:
    """The write did nothing, or it did all and its answer was lost."""
    world = make_world(fast_path)
    world.ray.submit(16, GPU, 5000.0)
    world.run(100, until=lambda: [r.state for r in world.rows()].count(S.RUNNING) == 2)
    world.desk.close(drain_s=5000.0, owner="test")
    before = {r.instance_id: r.created_at_s for r in world.ledger.live_instances()}
    failed: list[Point] = []

    def fail(point: Point) -> None:
        if point.call == call and point.is_after == is_after and not failed:
            failed.append(point)
            raise LedgerError("disk full")

    close_by_s = world.ledger.mode().close_by_s or 0.0
    failure = OfferFailure(
        key="x", failure_count=1, until_s=world.clock.now_s() + 900.0, error="E", message="m"
    )
    world.loop.book.save_failure(failure)
    world.clock.jump(jump_s)
    world.tracer.hook = fail
    with pytest.raises(LedgerError):
        world.step()
    world.tracer.hook = None
    world.run(10)

    rows = {r.instance_id: r.created_at_s for r in world.ledger.live_instances()}
    assert rows == {name: at_s + jump_s for name, at_s in before.items()}
    assert world.ledger.mode().close_by_s == close_by_s + jump_s
    assert world.ledger.failures()[0].until_s == failure.until_s + jump_s
    assert world.kinds().count("clock_jumped") in ((1, 2) if call == "append" else (1,))


# --- the clock itself -----------------------------------------------------------------------


def test_the_steady_clock_follows_the_wall_clock_only_when_told() -> None:
    inner = VirtualClock(1_000_000.0)
    clock = SteadyClock(inner)
    inner.advance(10.0)
    assert clock.now_s() == 1_000_010.0

    inner.jump(100.0)
    inner.advance(1.0)
    assert clock.now_s() == 1_000_011.0
    assert clock.drift_s() == 100.0
    assert clock.catch_up() == 100.0

    assert clock.now_s() == inner.now_s() == 1_000_111.0
    assert clock.catch_up() == 0.0


def test_the_steady_clock_ignores_what_is_no_jump_and_never_sleeps_itself() -> None:
    inner = VirtualClock(1_000_000.0)
    clock = SteadyClock(inner)
    inner.jump(4.0)

    assert clock.catch_up() == 0.0
    clock.sleep(7.0)

    assert clock.monotonic_s() == inner.monotonic_s()
    assert clock.now_s() == 1_000_007.0


def test_every_instant_of_a_row_is_moved_and_no_duration(fast_path: Path) -> None:
    """A new field of `Instance` that holds an instant must be moved, too."""
    from hybrid.control.steady import INSTANTS

    named = {name for name in Instance.model_fields if name.endswith(("_at_s", "_since_s"))}

    assert set(INSTANTS) == named - {"ended_at_s"} | {"lease_until_s"}
