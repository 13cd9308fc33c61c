"""A pool whose nodes never join is closed, and tried again by one launch at a time.

Item 20 of the reliability contract. The breaker is the offer's rest: it closes after the first
failure, not after ten, so what it lets through is what was under way before that failure. How
much that can be is a number of its own: `burst.first_wave`.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from hybrid.core.lifecycle import Deadlines
from hybrid.core.models import Caps, InstanceState
from tests.world.cloud import Machine
from tests.world.quick import STEP_S, quick_params
from tests.world.ray import all_done
from tests.world.world import World

GPU = {"GPU": 1.0}
S = InstanceState
HOUR_S = 3600.0
WANTED = 8
BASE_S, CAP_S = 180.0, 1800.0


def make_world(folder: Path, *, count: int = 4 * WANTED) -> World:
    """Return a world with contract numbers for rests, and work for `WANTED` nodes."""
    params = quick_params(
        backoff_base_s=BASE_S, backoff_cap_s=CAP_S, caps=Caps(node_count=20, gpu_count=80)
    )
    world = World(folder, params=params, step_s=STEP_S)
    world.cloud.boot_s = 10.0
    world.ray.submit(8, GPU, 1e6)
    world.ray.submit(count, GPU, 300.0)
    return world


def launched(world: World) -> list[Machine]:
    return list(world.cloud.machines.values())


def probes(hours: float) -> float:
    """Return how many single launches the rests allow in such a time, at the very most."""
    # 90 to 180 s, then 180 to 360, and so on; half an hour, or half of that, from the fifth on.
    return 5 + hours * HOUR_S / (CAP_S / 2)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["never joins", "ends at once"])
def test_a_broken_image_costs_one_wave_and_then_single_probes(fast_path: Path, how: str) -> None:
    world = make_world(fast_path)
    world.cloud.never_joins = how == "never joins"
    if how == "ends at once":
        world.cloud.launch_faults = ["fails_later"] * 1000

    world.run(3 * HOUR_S)

    assert len(launched(world)) <= WANTED + probes(3)
    [failure] = world.ledger.failures()
    assert failure.failure_count >= 4
    later = launched(world)[WANTED:]
    for one, two in pairwise(later):
        assert one.ended_s is not None
        assert two.booted_s - world.cloud.boot_s >= one.ended_s, "two probes at a time"


def test_an_image_that_never_joins_costs_one_first_wave_however_much_is_asked_for(
    fast_path: Path,
) -> None:
    """A join may take 15 minutes, and that long nobody knows that it will not come."""
    params = quick_params(
        caps=Caps(node_count=200, gpu_count=800),
        deadlines=Deadlines(launch_s=60, join_s=900),
        policy=quick_params().policy.model_copy(update={"first_wave_count": 4}),
    )
    world = World(fast_path, params=params, step_s=STEP_S)
    world.cloud.boot_s = 10.0
    world.cloud.never_joins = True
    world.ray.submit(400, GPU, 300.0)

    world.run(850)

    assert len(launched(world)) == 4
    [finding] = [f for f in world.loop.plan.findings if f.reason.code == "first_wave"]
    assert "at most 4 come at once (burst.first_wave), with 4 on the way" in finding.reason.message


def test_the_first_node_that_joins_opens_the_way_for_all(fast_path: Path) -> None:
    params = quick_params(
        caps=Caps(node_count=200, gpu_count=800),
        policy=quick_params().policy.model_copy(update={"first_wave_count": 4}),
    )
    world = World(fast_path, params=params, step_s=STEP_S)
    world.cloud.boot_s = 30.0
    world.ray.submit(200, GPU, 300.0)

    world.run(25)
    before = len(launched(world))
    world.run(60)
    world.boot()  # a new controller knows that nodes have joined
    world.run(60)

    assert before == 4
    assert len(launched(world)) > 40


def test_a_probe_that_joins_opens_the_pool(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.never_joins = True
    world.run(HOUR_S / 2)
    world.cloud.never_joins = False

    world.run(CAP_S + 600, until=all_done(world.ray.tasks[8:]))

    assert world.ledger.failures() == ()
    assert world.max_nodes <= WANTED
    world.run(600, until=world.is_quiet)
    world.assert_nothing_left()


def test_a_restart_does_not_open_the_pool(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.never_joins = True
    world.run(200, until=lambda: bool(world.ledger.failures()))
    before = len(launched(world))

    for _ in range(8):
        world.boot()
        world.run(10)

    assert len(launched(world)) == before


def test_a_closed_pool_kills_no_work_and_ends_no_node_of_its_own(fast_path: Path) -> None:
    """Two nodes of the same image work; a later one of the same pool fails."""
    world = make_world(fast_path, count=8)
    world.run(60, until=lambda: [r.state for r in world.rows()] == [S.RUNNING] * 2)
    working = launched(world)
    world.cloud.never_joins = True
    world.ray.submit(4, GPU, 100.0)

    world.run(200, until=lambda: bool(world.ledger.failures()))
    world.run(30)

    assert all(world.cloud.is_alive(m) for m in working)
    assert world.ray.killed_busy == []
    assert all(task.deaths == 0 for task in world.ray.tasks)
