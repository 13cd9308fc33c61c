"""Hundreds of leases that are due at once, as after an absence, do not hold up a tick.

Some clouds need calls for each lease. Item 11 of the reliability contract.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.control.finish import ROUTINE_COUNT
from hybrid.control.params import ControlParams
from hybrid.core.models import Caps
from tests.core.make import make_instance
from tests.world.clock import VirtualClock
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World, make_offer

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


@pytest.mark.slow
def test_all_leases_of_two_thousand_are_renewed_in_time_at_the_defaults(tmp_path: Path) -> None:
    count, params = 2_000, ControlParams()
    world = fleet(tmp_path, params, count=count)
    finisher, book = world.loop.finisher, world.loop.book
    least_left_s, most_renewed = params.lease_s, 0
    for _ in range(round(3 * params.renew_s / params.tick_s)):
        world.clock.advance(params.tick_s)
        before = {row.instance_id: row.lease_until_s for row in book.all()}
        left_s = min(row.lease_until_s or 0.0 for row in book.all()) - world.clock.now_s()
        least_left_s = min(least_left_s, left_s)

        finisher.renew_leases()

        renewed_count = sum(row.lease_until_s != before[row.instance_id] for row in book.all())
        most_renewed = max(most_renewed, renewed_count)

    # As often as is said, give or take a round; so never short, and never all at once.
    assert least_left_s >= params.lease_s - 2 * params.renew_s - 2 * params.tick_s
    assert most_renewed <= count * params.tick_s / params.renew_s + 1


def fleet(folder: Path, params: ControlParams, *, count: int) -> World:
    """Return a world with machines of one cloud that have all just been rented."""
    offer, store, clock = make_offer(), MemoryStore(), VirtualClock()
    for number in range(1, count + 1):
        row = make_instance(
            f"i-{number}",
            offer=offer,
            now_s=clock.now_s(),
            provider_id=f"{offer.provider}-m{number}",
            lease_until_s=clock.now_s() + params.lease_s,
        )
        store.instances[row.instance_id] = store.asked[row.instance_id] = row
    world = World(folder, params=params, offers=[offer], store=store, clock=clock)
    for row in store.instances.values():
        world.clouds[offer.provider].create(offer, row.spec)
    world.loop.clouds.look()
    world.loop.book.read()
    assert len(world.loop.book.all()) == count
    return world


def tick_and_count(world: World) -> int:
    world.step()
    return renewed(world)
