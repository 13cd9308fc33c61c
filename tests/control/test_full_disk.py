"""A ledger that cannot be written: nothing new is rented, nothing that works dies of it.

Item 8 of the reliability contract: a full disk costs no lives and no money.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.core.errors import LedgerError
from hybrid.core.models import InstanceState
from tests.world.cloud import Machine
from tests.world.trace import Point
from tests.world.world import World

GPU = {"GPU": 1.0}
S = InstanceState
WRITES = {"request", "save", "append", "save_job", "save_failure", "clear_failure", "set_mode"}


def fill_disk(world: World) -> None:
    def hook(point: Point) -> None:
        if point.who == "ledger" and point.call in WRITES and not point.is_after:
            raise LedgerError("disk full")

    world.tracer.hook = hook


def suffer(world: World, seconds: int) -> int:
    """Step on; return how many ticks failed."""
    before = world.failed_ticks
    for _ in range(seconds):
        world.step()
    return world.failed_ticks - before


@pytest.fixture
def world(fast_path: Path) -> World:
    """One rented node that works, with a lease of 600 s."""
    world = World(fast_path)
    world.may_fail = True
    world.ray.submit(12, GPU, 5_000.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    return world


def machine(world: World) -> Machine:
    return world.machines()[0]


def left_s(world: World) -> float:
    return (machine(world).expires_at_s or 0.0) - world.clock.true_s()


def test_a_lease_is_renewed_whatever_else_fails(world: World) -> None:
    """A job that waits and a node that dies make other writes fail first in each tick."""
    world.ray.submit(9, GPU, 5_000.0)
    host = next(n for n in world.ray.nodes.values() if n.host)
    fill_disk(world)
    world.ray.kill(host)

    failed = suffer(world, 1_500)

    assert failed > 1_000
    assert machine(world).ended_s is None, "it works, so it lives"
    assert not world.ray.killed_busy


def test_a_lease_does_not_run_away(world: World) -> None:
    """Or the machine would outlive a controller that dies next, by days."""
    fill_disk(world)

    for _ in range(300):
        suffer(world, 10)
        assert left_s(world) <= 601

    world.tracer.hook = None
    world.run(200)
    assert left_s(world) <= 601


def test_what_must_end_is_ended(world: World) -> None:
    row = world.row()
    world.cloud.failing = {"terminate"}
    world.desk.close(drain_s=0.0, owner="test")
    world.run(30, until=lambda: world.row().state is S.TERMINATING)
    fill_disk(world)
    world.cloud.failing = set()

    suffer(world, 30)

    assert machine(world).ended_by == "terminate", row.instance_id


def test_nothing_new_is_rented_meanwhile(world: World) -> None:
    fill_disk(world)
    world.ray.submit(16, GPU, 5_000.0)

    suffer(world, 200)

    assert len(world.machines()) == 1


def test_it_goes_on_as_soon_as_it_can(world: World) -> None:
    fill_disk(world)
    world.ray.submit(4, GPU, 5_000.0)
    suffer(world, 100)

    world.tracer.hook = None
    world.run(60, until=lambda: len(world.machines()) == 2)


@pytest.mark.parametrize("where", ["jobs", "ray", "reconciler"])
def test_a_mistake_of_ours_costs_no_lives_either(world: World, where: str) -> None:
    """A bug that breaks each tick at the same place: leases go on, and nothing is rented."""
    names = {"jobs": "step", "ray": "look", "reconciler": "reconcile"}

    def broken(*_: object, **__: object) -> None:
        raise KeyError("a bug")

    setattr(getattr(world.loop, where), names[where], broken)
    world.ray.submit(16, GPU, 5_000.0)
    for _ in range(1_500):
        with pytest.raises(KeyError):
            world.step()

    assert machine(world).ended_s is None
    assert len(world.machines()) == 1
