"""A controller keeps nothing of machines that are no more but what the ledger has.

Objects are counted and not bytes, so one that is kept for each machine is seen at once.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from hybrid.core.models import Caps
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World

MACHINES = 20
# The last so many boots of an offer are kept, so they are had first.
WARM_UP_BURSTS = 3
_NOT_KEPT_THERE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def test_nothing_is_kept_of_machines_that_have_ended(fast_path: Path) -> None:
    params = quick_params().model_copy(update={"caps": Caps(node_count=MACHINES)})
    world = World(fast_path, params=params, step_s=STEP_S, is_calling=True)
    for _ in range(WARM_UP_BURSTS):
        burst(world)
    before = kept(world)

    for _ in range(2):
        burst(world)

    assert world.id_count == (WARM_UP_BURSTS + 2) * MACHINES
    assert kept(world) - before < MACHINES


def burst(world: World) -> None:
    """Rent machines, work on each, and return them all."""
    world.ray.submit(4 * (MACHINES + world.host_count), {"GPU": 1.0}, 60.0)
    world.run(2_000, until=lambda: len(world.alive()) == MACHINES)
    world.run(2_000, until=lambda: all(task.is_done for task in world.ray.tasks))
    world.run(2_000, until=world.is_quiet)
    world.desk.publish()
    _ = world.desk.status()
    # As clouds and Ray do in time.
    for cloud in world.clouds.values():
        cloud.retired_count += len(cloud.machines)
        cloud.machines.clear()
    world.ray.retired_count += len(world.ray.nodes)
    world.ray.nodes = {k: n for k, n in world.ray.nodes.items() if not n.is_dead}
    world.ray.tasks.clear()
    world.step()
    world.desk.publish()


def kept(world: World) -> int:
    """Return how many things the controller holds, however deep."""
    gc.collect()
    return sum(1 for _ in _within(world.loop, world.desk))


def _within(*roots: object) -> Iterator[object]:
    seen: set[int] = set()
    found: list[object] = list(roots)
    while found:
        one = found.pop()
        if id(one) in seen or isinstance(one, _NOT_KEPT_THERE) or _is_worlds(one):
            continue
        seen.add(id(one))
        yield one
        found += gc.get_referents(one)


def _is_worlds(one: object) -> bool:
    return type(one).__module__.startswith(("tests.", "sqlalchemy.", "sqlite3", "logging"))
