"""One writer: a controller that was paused and replaced changes nothing any more.

Items 1 and 26 of the reliability contract.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hybrid.core.errors import FencedError
from hybrid.core.models import InstanceState, JobSpec, NodeStatus
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, quick_params
from tests.world.trace import READS, Point
from tests.world.world import Controller, World

GPU = {"GPU": 1.0}
S = InstanceState

TICKS = 4


def make_world(folder: Path) -> World:
    folder.mkdir()
    world = World(
        folder,
        params=quick_params(),
        step_s=STEP_S,
        store=MemoryStore(),
        is_base_traced=True,
        is_calling=True,
    )
    world.cloud.boot_s = 10.0
    return world


def launching(world: World) -> None:
    """Instances are about to be launched, a job to be handed over, a host to be restarted."""
    world.run(2 * STEP_S)
    world.ray.submit(16, GPU, 300.0)
    world.run(2 * STEP_S)
    world.desk.submit(JobSpec(entrypoint="true"))
    world.fleet.joined.discard("host-1")


def draining(world: World) -> None:
    """A node is about to be drained and ended, a job to be stopped, a lease to be renewed."""
    world.ray.submit(8, GPU, 5000.0)
    world.ray.submit(4, GPU, 25.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    job = world.desk.submit(JobSpec(entrypoint="true"))
    world.run(100, until=lambda: _has_idle_node(world))
    world.step()
    world.desk.cancel(job.job_id)


def _has_idle_node(world: World) -> bool:
    nodes = world.loop.ray.view.nodes
    return any(n.instance_id and n.status is NodeStatus.IDLE for n in nodes)


def closing(world: World) -> None:
    """Everything is about to end, the base too."""
    world.ray.submit(12, GPU, 300.0)
    world.run(60, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    world.desk.close(drain_s=0.0, owner="test")


@pytest.mark.slow
@pytest.mark.parametrize("prepare", [launching, draining, closing])
def test_a_paused_old_controller_does_nothing_after_a_new_one_took_over(
    fast_path: Path, prepare: Callable[[World], None]
) -> None:
    """Stopped at any point of some ticks; it wakes up after the new one has worked for a while."""
    first = make_world(fast_path / "first")
    prepare(first)
    start = first.tracer.count
    first.tracer.is_recording = True
    for _ in range(TICKS):
        if not first.loop.is_done:
            first.step()
    mutations = {p.call for p in first.tracer.points if not p.is_read}
    assert mutations & {"launch", "terminate", "drain"}, "or the test proves nothing"

    for number in range(start, first.tracer.count):
        world = make_world(fast_path / str(number))
        prepare(world)
        old = world.controllers[0]
        world.tracer.is_recording = True
        world.tracer.at(number, partial(take_over, world))
        with pytest.raises(FencedError):
            tick_until_fenced(world, old)

        assert [str(p) for p in done_by_the_old(world.tracer.points, number)] == []
        world.check()
        for controller in world.controllers:
            controller.ledger.close()


def tick_until_fenced(world: World, old: Controller) -> None:
    for _ in range(TICKS + 1):
        world.clock.advance(STEP_S)
        world.sync()
        world.ray.step()
        old.loop.tick()


def take_over(world: World) -> None:
    """A new controller acquires the ledger and works for three ticks."""
    world.boot(is_last_alive=True)
    for _ in range(3):
        if not world.loop.is_done:
            world.step()


def done_by_the_old(points: list[Point], number: int) -> list[Point]:
    """Return what the old controller changed after it was replaced at a point.

    A call whose epoch was checked already is on its way and cannot be called back; a write of
    the ledger can, and is: it checks the epoch in its own transaction.
    """
    changed = [
        p
        for p in points
        if p.owner == 0 and p.number > number and p.is_after and not p.is_failed and not p.is_read
    ]
    before = [p for p in points if p.number <= number and p.call != "mode"]
    if before and not before[-1].is_after and not before[-1].is_read:
        before.pop()
    is_on_its_way = bool(before) and before[-1].call == "check_epoch" and before[-1].is_after
    return changed[1:] if is_on_its_way and changed and changed[0].who != "ledger" else changed


def test_every_call_of_the_world_is_known_as_a_read_or_changes_something(fast_path: Path) -> None:
    """The list of reads is what the tests trust."""
    writes = {
        "acquire",
        "append",
        "clear_failure",
        "close",
        "drain",
        "extend",
        "join",
        "launch",
        "leave",
        "mark_joined",
        "request",
        "save",
        "save_failure",
        "save_job",
        "set_mode",
        "start",
        "stop",
        "submit",
        "terminate",
        "tidy",
    }
    world = make_world(fast_path / "only")
    world.tracer.is_recording = True
    closing(world)
    while not world.loop.is_done:
        world.step()

    assert {p.call for p in world.tracer.points} <= writes | READS


def test_the_old_controllers_join_tokens_and_jobs_are_refused(fast_path: Path) -> None:
    world = make_world(fast_path / "only")
    world.ray.submit(12, GPU, 300.0)
    world.run(60, until=lambda: bool(world.machines()))
    [machine] = world.machines()
    world.boot(is_last_alive=True)
    old = world.controllers[0].desk

    with pytest.raises(FencedError):
        old.join(machine.spec.instance_id, machine.join_token)
    with pytest.raises(FencedError):
        old.submit(JobSpec(entrypoint="true"))
    with pytest.raises(FencedError):
        old.pause("all", owner="ann")
    assert world.desk.join(machine.spec.instance_id, machine.join_token) == "ray-token"
