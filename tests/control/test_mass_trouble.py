"""When much of the cluster looks unhealthy at once, we are the ones who may see wrongly.

Item 21 of the reliability contract: no scale-in then. What Ray itself calls dead is ended all the
same: a node that Ray has declared dead never comes back, and its machine costs money.
"""

from __future__ import annotations

from pathlib import Path

from hybrid.core.models import Caps, InstanceState
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World

GPU = {"GPU": 1.0}
S = InstanceState


def make_world(folder: Path, *, count: int, lasts_s: float = 20.0) -> World:
    """Return a world with four hosts, and `count` rented nodes whose work ends soon."""
    params = quick_params(caps=Caps(node_count=20, gpu_count=80))
    world = World(folder, params=params, step_s=STEP_S, host_count=4)
    world.cloud.boot_s = 10.0
    world.ray.submit(16, GPU, 1e6)
    world.ray.submit(4 * count, GPU, lasts_s)
    running = [S.RUNNING] * count
    world.run(100, until=lambda: [r.state for r in world.rows()] == running)
    return world


def kill_hosts(world: World, count: int) -> None:
    """Hosts die, and cannot be reached to be started again."""
    for name in list(world.fleet.shapes)[:count]:
        world.fleet.unreachable.add(name)
        for node in world.ray.nodes.values():
            if node.host == name and not node.is_dead:
                world.ray.kill(node)
    # Their work is nobody's concern here: it would keep the rented nodes busy.
    world.ray.tasks = [t for t in world.ray.tasks if t.node_id]


def test_half_of_the_hosts_dead_means_no_scale_in_until_they_are_back(fast_path: Path) -> None:
    world = make_world(fast_path, count=2)
    kill_hosts(world, 3)

    world.run(600)

    assert world.ray.drains == []
    assert world.calls("terminate") == 0
    assert [r.state for r in world.rows()] == [S.RUNNING] * 2
    world.fleet.joined.clear()
    world.fleet.unreachable.clear()
    world.run(300, until=world.is_quiet)
    world.assert_nothing_left()


def test_one_host_of_many_is_no_reason_to_stop(fast_path: Path) -> None:
    world = make_world(fast_path, count=2)
    kill_hosts(world, 1)

    world.run(300, until=world.is_quiet)


def test_half_of_the_rented_nodes_unseen_means_that_none_is_ended(fast_path: Path) -> None:
    """Ray answers without them: a head that has just begun again. They come back in time."""
    world = make_world(fast_path, count=6, lasts_s=60.0)
    hidden = [n for n in world.ray.nodes.values() if n.instance_id][:3]
    for node in hidden:
        world.ray.kill(node)
        del world.ray.nodes[node.node_id]

    world.run(world.params.node_absent_s - STEP_S)

    assert world.calls("terminate") == 0
    assert world.ray.drains == []
    for node in hidden:
        world.ray.add(node.total, node.labels, instance_id=node.instance_id)
    world.run(600, until=world.is_quiet)
    assert world.ray.killed_busy == []


def test_what_ray_calls_dead_is_ended_and_the_healthy_rest_stays_meanwhile(
    fast_path: Path,
) -> None:
    world = make_world(fast_path, count=6)
    world.cloud.ends_slowly_s = 300.0
    dead = [n for n in world.ray.nodes.values() if n.instance_id][:3]
    healthy = {n.instance_id for n in world.ray.nodes.values() if n.instance_id} - {
        n.instance_id for n in dead
    }
    for node in dead:
        world.ray.kill(node)
    world.ray.tasks = [t for t in world.ray.tasks if t.node_id]

    world.run(200)

    told = {m.spec.instance_id for m in world.machines() if m.ended_by == "terminate"}
    assert told == {n.instance_id for n in dead}
    assert {r.instance_id for r in world.rows() if r.state is S.RUNNING} == healthy
    world.run(600, until=world.is_quiet)
    world.assert_nothing_left()
