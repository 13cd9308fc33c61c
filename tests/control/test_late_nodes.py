"""Machines and nodes that come when nobody counts on them any more.

Items 13 and 34 of the reliability contract, and of the bad luck list: a node that joins after its
deadline, and one that comes back after it was declared dead.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.control.commands import RefusedError
from hybrid.core.models import Instance, InstanceState
from tests.world.quick import STEP_S, quick_params
from tests.world.ray import SimNode, all_done
from tests.world.world import World, two_clouds

GPU = {"GPU": 1.0}
S = InstanceState


def make_world(folder: Path, *, lasts_s: float = 200.0, **changes: object) -> World:
    """Return a world in which four tasks find no place at home."""
    world = World(folder, params=quick_params(**changes), offers=list(two_clouds()), step_s=STEP_S)
    for cloud in world.clouds.values():
        cloud.boot_s = 10.0
    world.ray.submit(8, GPU, 1e6)
    world.ray.submit(4, GPU, lasts_s)
    return world


def with_node(folder: Path, **changes: object) -> tuple[World, Instance, SimNode]:
    world = make_world(folder, lasts_s=500.0, **changes)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    row = world.row()
    [node] = [n for n in world.ray.nodes.values() if n.instance_id == row.instance_id]
    return world, row, node


def forget(world: World, node: SimNode) -> None:
    """Ray has no such node any more; its tasks wait again."""
    world.ray.kill(node)
    del world.ray.nodes[node.node_id]


def comes_right(world: World) -> None:
    tasks = world.ray.tasks[8:]
    world.run(900, until=all_done(tasks))
    world.run(600, until=world.is_quiet)
    world.assert_nothing_left()


# --- after the deadline of the join ----------------------------------------------------------


@pytest.mark.parametrize("late_s", [0.0, 5.0, 30.0])
def test_a_node_that_asks_for_its_token_after_its_deadline_is_refused_and_ended(
    fast_path: Path, late_s: float
) -> None:
    world = make_world(fast_path)
    join_s = world.params.deadlines.join_s
    world.cloud.boot_s, world.cloud.ends_slowly_s = join_s + 2 * STEP_S + late_s, 120.0
    world.run(100, until=lambda: bool(world.cloud.machines))
    [machine] = world.cloud.machines.values()

    world.run(join_s + 60 + late_s, until=lambda: bool(machine.problem))

    assert "join refused" in machine.problem
    assert not machine.has_joined
    row = world.ledger.instance(machine.spec.instance_id)
    assert row is not None
    assert row.state is S.TERMINATING
    comes_right(world)
    assert machine.ended_by == "terminate"


def test_a_node_that_traded_its_token_in_time_and_joins_late_gets_no_work_for_long(
    fast_path: Path,
) -> None:
    """Its Ray starts after it was given up: it is ended all the same, and its work is retried."""
    world = make_world(fast_path)
    world.may_kill_busy = True
    world.cloud.never_joins = True
    world.run(100, until=lambda: bool(world.cloud.machines))
    [machine] = world.cloud.machines.values()
    world.cloud.ends_slowly_s = 60.0
    world.desk.join(machine.spec.instance_id, machine.join_token)
    world.run(200, until=lambda: world.row().state is S.TERMINATING)

    world.ray.add(machine.offer.shape, machine.spec.labels, instance_id=machine.spec.instance_id)
    machine.has_joined = True

    world.run(200, until=lambda: not world.cloud.is_alive(machine))
    assert world.row().state in (S.TERMINATING, S.TERMINATED)
    comes_right(world)


# --- after it was declared dead ---------------------------------------------------------------


def test_a_node_that_comes_back_after_ray_called_it_dead_is_not_taken_back(
    fast_path: Path,
) -> None:
    """Its place went to another; it is told to end until the cloud says gone."""
    world, row, node = with_node(fast_path)
    world.may_kill_busy = True
    world.cloud.failing = {"terminate"}
    world.ray.kill(node)
    world.run(20, until=lambda: world.row().state is S.TERMINATING)

    world.ray.add(node.total, node.labels, instance_id=row.instance_id)
    world.run(100)

    assert world.row().state is S.TERMINATING
    assert world.loop.commitment.node_count == len(world.alive()), "it still counts, once"
    world.cloud.failing = set()
    comes_right(world)


def test_a_machine_that_is_found_after_it_was_lost_is_ended_and_not_used(fast_path: Path) -> None:
    """The partition heals: cloud and node were both out of sight for long."""
    world, row, node = with_node(fast_path, node_absent_s=120.0)
    [machine] = world.machines_of(row.instance_id)
    machine.hidden_lists = 1000
    forget(world, node)
    world.cloud.failing = {"terminate"}
    world.run(400, until=lambda: world.row().state is S.LOST)
    assert world.loop.commitment.node_count >= 1, "its place is held"

    machine.hidden_lists = 0
    world.ray.add(node.total, node.labels, instance_id=row.instance_id)
    world.may_kill_busy = True
    world.run(30)

    assert world.row().state is S.TERMINATING
    with pytest.raises(RefusedError):
        world.desk.join(machine.spec.instance_id, machine.join_token)
    world.cloud.failing = set()
    comes_right(world)


def test_a_node_of_an_ended_instance_is_nobodys_and_is_written_down(fast_path: Path) -> None:
    """A ghost: the cloud says gone, Ray sees a node. It is no capacity of ours to be billed."""
    world, row, _ = with_node(fast_path)
    comes_right(world)

    ghost = world.ray.add({"GPU": 4.0}, {"site": "cloud"}, instance_id=row.instance_id)
    ghost_id = ghost.node_id
    world.loop.tick()

    told = [e for e in world.ledger.events(limit=1000) if e.kind == "unknown_node_seen"]
    assert [e.facts["node_id"] for e in told] in ([ghost_id], [])
    assert list(world.ledger.live_instances()) == []


@pytest.mark.parametrize("silent_s", [30.0, 120.0, 300.0])
def test_nodes_that_ray_forgot_for_a_while_and_shows_again(
    fast_path: Path, silent_s: float
) -> None:
    """Ray does not answer, then it lacks the node (a new head), then the node registers again."""
    world, row, node = with_node(fast_path)
    world.ray.is_silent = True
    world.run(silent_s)
    assert world.row().state is S.RUNNING
    world.ray.is_silent = False
    forget(world, node)

    world.run(world.params.node_absent_s - STEP_S)
    world.ray.add(node.total, node.labels, instance_id=row.instance_id)
    world.run(2 * STEP_S)

    assert world.row().state is S.RUNNING
    assert len(world.machines()) == 1
    comes_right(world)
