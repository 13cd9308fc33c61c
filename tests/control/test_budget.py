"""Money caps are hard: what is spent stays under them, also when they are reached at work.

Item 10 of the reliability contract, in dollars.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.core.cost import DAY_S, day_start_s, month_start_s
from hybrid.core.errors import LedgerError
from hybrid.core.models import Caps, InstanceState
from tests.world.clock import VirtualClock
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, quick_params
from tests.world.trace import Point
from tests.world.world import World, make_offer

GPU = {"GPU": 1.0}
S = InstanceState
NOON_S = day_start_s(1_790_000_000.0) + DAY_S / 2


def make_world(folder: Path, caps: Caps, *, now_s: float = NOON_S) -> World:
    world = World(
        folder,
        params=quick_params(caps=caps),
        offers=[make_offer(usd_per_hour=36.0)],  # one cent a second
        clock=VirtualClock(now_s),
        step_s=STEP_S,
        store=MemoryStore(),
    )
    world.cloud.boot_s = 10.0
    world.may_kill_busy = True
    world.ray.submit(8, GPU, 1e6)
    world.ray.submit(8, GPU, 1e6)
    return world


def spent(world: World, since_s: float) -> float:
    return sum(
        s.usd * (s.to_s - max(since_s, s.from_s)) / (s.to_s - s.from_s)
        for s in world.ledger.spends()
        if s.to_s > since_s
    )


@pytest.mark.slow
@pytest.mark.parametrize("period", ["day", "month"])
@pytest.mark.parametrize("slow_s", [0.0, 20.0], ids=["at-once", "slow-endings"])
def test_a_reached_cap_drains_everything_and_is_never_passed(
    fast_path: Path, period: str, slow_s: float
) -> None:
    cap = 10.0
    world = make_world(fast_path, Caps.model_validate({f"usd_per_{period}": cap}))
    world.cloud.ends_slowly_s = slow_s

    world.run(100, until=lambda: len(world.alive()) == 2)
    world.run(2000, until=world.is_quiet)
    assert any(r.drain_reason and r.drain_reason.code == f"budget_{period}" for r in world.rows())
    world.run(3000)

    since_s = day_start_s(NOON_S) if period == "day" else month_start_s(NOON_S)
    total = spent(world, since_s)
    assert 0.5 * cap < total <= cap
    assert world.loop.commitment.node_count == 0


def test_what_still_boots_at_the_cap_is_ended_at_once(fast_path: Path) -> None:
    world = make_world(fast_path, Caps(usd_per_day=10.0))
    world.cloud.boot_s = 1e6
    world.params = world.params.model_copy(
        update={"deadlines": world.params.deadlines.model_copy(update={"join_s": 1e6})}
    )
    world.boot()
    world.run(100, until=lambda: len(world.alive()) == 2)

    world.run(2000, until=world.is_quiet)

    assert spent(world, day_start_s(NOON_S)) <= 10.0
    assert world.ray.drains == []


def test_a_cap_is_held_although_ray_and_drains_are_silent(fast_path: Path) -> None:
    world = make_world(fast_path, Caps(usd_per_day=10.0))
    world.run(100, until=lambda: len(world.alive()) == 2)
    world.ray.is_deaf = True

    world.run(2000, until=world.is_quiet)

    assert spent(world, day_start_s(NOON_S)) <= 10.0


def test_a_cap_is_held_although_ray_answers_nothing_at_all(fast_path: Path) -> None:
    """The head is gone for good: a drain's deadline needs no Ray."""
    world = make_world(fast_path, Caps(usd_per_day=10.0))
    world.run(100, until=lambda: len(world.alive()) == 2)
    world.ray.is_silent = True

    world.run(2000, until=world.is_quiet)

    assert spent(world, day_start_s(NOON_S)) <= 10.0


def test_a_cap_is_held_while_down_waits_for_work(fast_path: Path) -> None:
    world = make_world(fast_path, Caps(usd_per_day=10.0))
    world.run(100, until=lambda: [r.state for r in world.rows()] == [S.RUNNING] * 2)
    world.desk.close(drain_s=12 * 3600.0, owner="ann")

    world.run(2000, until=world.is_quiet)

    assert spent(world, day_start_s(NOON_S)) <= 10.0
    assert "down_shortened" in world.kinds()


def test_a_cap_is_held_although_an_operator_gave_a_node_a_day(fast_path: Path) -> None:
    world = make_world(fast_path, Caps(usd_per_day=10.0))
    world.run(100, until=lambda: len([r for r in world.rows() if r.state is S.RUNNING]) == 2)
    for row in world.rows():
        world.desk.drain(row.instance_id, deadline_s=DAY_S, owner="ann")

    world.run(2000, until=world.is_quiet)

    assert spent(world, day_start_s(NOON_S)) <= 10.0
    assert world.kinds().count("drain_shortened") == 2


def test_what_ended_with_a_lost_answer_counts_at_once(fast_path: Path) -> None:
    """The ledger booked its money, and then the disk filled up before it said so."""
    world = make_world(fast_path, Caps(usd_per_day=10.0))
    world.may_fail = True
    world.run(100, until=lambda: len(world.alive()) == 2)
    world.run(100)
    before_usd = world.loop.commitment.day_usd
    is_lost = False

    def hook(point: Point) -> None:
        nonlocal is_lost
        is_ended = any(row.is_ended for row in world.ledger.instances())
        if point.call == "save" and point.is_after and is_ended and not is_lost:
            is_lost = True
            raise LedgerError("disk full")

    world.tracer.hook = hook
    world.cloud.kill(world.alive()[0])
    world.run(100, until=lambda: is_lost)
    world.run(10)

    assert world.loop.commitment.day_usd >= before_usd


def test_a_paused_scale_in_does_not_lift_a_money_cap(fast_path: Path) -> None:
    world = make_world(fast_path, Caps(usd_per_day=10.0))
    world.run(100, until=lambda: len(world.alive()) == 2)
    world.desk.pause("in", owner="ann")

    world.run(2000, until=world.is_quiet)

    assert spent(world, day_start_s(NOON_S)) <= 10.0


@pytest.mark.slow
def test_at_midnight_a_new_day_begins(fast_path: Path) -> None:
    """The cap of today stops launches; tomorrow's money is spent tomorrow, and no more."""
    midnight_s = day_start_s(NOON_S) + DAY_S
    world = make_world(fast_path, Caps(usd_per_day=10.0), now_s=midnight_s - 2000.0)
    world.run(2000 - 2 * STEP_S)
    assert world.is_quiet()
    before = len(world.machines())

    world.run(3000)

    assert len(world.machines()) > before
    for day_s, usd in world.day_usd.items():
        assert usd <= 10.0, day_s
    assert spent(world, midnight_s) <= 10.0


def test_an_instance_that_lives_over_midnight_is_split_between_the_days(fast_path: Path) -> None:
    midnight_s = day_start_s(NOON_S) + DAY_S
    world = make_world(fast_path, Caps(usd_per_day=10.0), now_s=midnight_s - 200.0)

    world.run(4000)

    for day_s, usd in world.day_usd.items():
        assert usd <= 10.0, day_s


def test_a_crash_at_the_cap_changes_nothing(fast_path: Path) -> None:
    world = make_world(fast_path, Caps(usd_per_day=10.0))
    for _ in range(400):
        world.step()
        if world.loop.tick_count % 3 == 0:
            world.boot()

    assert world.is_quiet()
    assert spent(world, day_start_s(NOON_S)) <= 10.0


def test_the_fixed_caps_hold_whatever_is_asked(fast_path: Path) -> None:
    world = make_world(fast_path, Caps(node_count=3, gpu_count=9, usd_per_hour=100.0))
    world.ray.submit(100, GPU, 1e6)

    world.run(300)

    assert len(world.alive()) == 2, "nine GPUs are two instances of four"
