"""When much of the cluster looks unhealthy at once, we are the ones who may see wrongly.

Item 21 of the reliability contract: no scale-in then, and no end for what only Ray calls dead: a
network that is cut looks the same. Not for ever, since machines cost money, and people are told.
"""

from __future__ import annotations

import re
from pathlib import Path

from hybrid.core.models import Caps, InstanceState
from hybrid.core.views import Alarm
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


def kill_rented(world: World, count: int) -> list[str]:
    """Ray declares so many rented nodes dead; return their instances."""
    dead = [n for n in world.ray.nodes.values() if n.instance_id][:count]
    for node in dead:
        world.ray.kill(node)
    world.ray.tasks = [t for t in world.ray.tasks if t.node_id]
    return [n.instance_id for n in dead]


def told_to_end(world: World) -> set[str]:
    return {m.spec.instance_id for m in world.machines() if m.ended_by == "terminate"}


def alarm_of(world: World) -> Alarm | None:
    world.desk.publish()
    found = [a for a in world.desk.status().alarms if a.code == "mass_trouble"]
    return found[0] if found else None


def test_half_of_the_rented_nodes_dead_means_that_none_is_ended_for_a_while(
    fast_path: Path,
) -> None:
    world = make_world(fast_path, count=6)
    world.params = world.params.model_copy(update={"mass_hold_s": 600.0})
    world.boot()
    dead = kill_rented(world, 3)

    world.run(590)

    assert world.calls("terminate") == 0
    assert [r.state for r in world.rows()] == [S.RUNNING] * 6
    alarm = alarm_of(world)
    assert alarm is not None
    assert f"3 of 10 nodes look dead at once ({', '.join(dead)}), more than" in alarm.what
    assert re.search(r"ended in 1[05]s at the earliest \(idle.unhealthy_hold\)", alarm.what)
    [event] = [e for e in world.ledger.events() if e.kind == "mass_trouble_began"]
    assert event.facts == {"bad_count": 3, "count": 10}
    world.run(600, until=world.is_quiet)
    world.assert_nothing_left()


def test_after_the_hold_what_looks_dead_is_ended_and_the_healthy_rest_stays(
    fast_path: Path,
) -> None:
    world = make_world(fast_path, count=6)
    world.cloud.ends_slowly_s = 300.0
    dead = kill_rented(world, 3)
    healthy = {r.instance_id for r in world.rows()} - set(dead)

    world.run(200)

    assert told_to_end(world) == set(dead)
    assert {r.instance_id for r in world.rows() if r.state is S.RUNNING} == healthy
    alarm = alarm_of(world)
    assert alarm is not None
    assert "those are ended now" in alarm.what
    world.run(600, until=world.is_quiet)
    world.assert_nothing_left()
    assert alarm_of(world) is None
    assert [e.kind for e in world.ledger.events() if e.kind.startswith("mass")] == [
        "mass_trouble_began",
        "mass_trouble_ended",
    ]


def test_what_the_cloud_or_the_machine_says_holds_at_once(fast_path: Path) -> None:
    """A machine that says that its Ray has ended is no matter of who can see whom."""
    world = make_world(fast_path, count=6)
    said, gone, *unsaid = kill_rented(world, 4)
    machine = {m.spec.instance_id: m for m in world.machines()}
    token = machine[said].join_token
    world.desk.report(said, token, phase="exited", problem="raylet was killed")
    world.cloud.kill(machine[gone])

    world.run(30)

    states = {r.instance_id: r.state for r in world.rows()}
    assert [states[name] for name in unsaid] == [S.RUNNING] * 2
    assert states[said] in (S.TERMINATING, S.TERMINATED)
    assert states[gone] is S.TERMINATED


def test_two_deaths_in_a_large_cluster_are_ended_at_once(fast_path: Path) -> None:
    world = make_world(fast_path, count=8)
    dead = kill_rented(world, 2)

    world.run(30)

    assert set(dead) <= told_to_end(world)
    assert alarm_of(world) is None


def test_work_of_held_nodes_is_rented_for_anew(fast_path: Path) -> None:
    """Waiting for what may be dead must not keep work waiting."""
    world = make_world(fast_path, count=4, lasts_s=200.0)
    nodes = [n for n in world.ray.nodes.values() if n.instance_id][:3]
    for node in nodes:
        world.ray.kill(node)

    world.run(50)

    assert world.calls("terminate") == 0
    assert len(world.rows()) > 4
