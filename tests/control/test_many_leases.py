"""Hundreds of leases that are due at once, as after an absence, do not hold up a tick.

Some clouds need calls for each lease. Item 11 of the reliability contract.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.control.finish import ROUTINE_COUNT
from hybrid.core.models import Caps
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World

COUNT = 2 * ROUTINE_COUNT + 10


@pytest.fixture
def world(fast_path: Path) -> World:
    """A world with many machines that work."""
    params = quick_params().model_copy(update={"caps": Caps(node_count=COUNT)})
    world = World(fast_path, params=params, step_s=STEP_S)
    world.ray.submit(4 * (COUNT + 2), {"GPU": 1.0}, 1e6)
    world.run(2_000, until=lambda: len(world.alive()) == COUNT)
    return world


def leases(world: World) -> list[float]:
    return sorted(round(row.lease_until_s or 0.0, 3) for row in world.loop.book.all())


def age_all(world: World, left_s: float) -> None:
    """Let all leases have so much left."""
    until_s = world.clock.now_s() + left_s
    for row in world.loop.book.all():
        world.loop.book.note(row, lease_until_s=until_s)


def renewed(world: World) -> int:
    """Return how many leases are as long as can be."""
    long_s = world.clock.now_s() + world.params.lease_s - world.params.renew_s / 2
    return sum(until_s > long_s for until_s in leases(world))


def test_some_of_them_are_renewed_in_each_tick(world: World) -> None:
    age_all(world, 0.7 * world.params.lease_s)

    seen = [tick_and_count(world) for _ in range(3)]

    assert seen == [ROUTINE_COUNT, 2 * ROUTINE_COUNT, COUNT]


def test_short_ones_are_renewed_at_once(world: World) -> None:
    age_all(world, 0.4 * world.params.lease_s)

    assert tick_and_count(world) == COUNT


def tick_and_count(world: World) -> int:
    world.step()
    return renewed(world)
