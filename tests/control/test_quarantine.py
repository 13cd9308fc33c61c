"""A fault of one instance costs that instance, and the loop goes on.

Item 25 of the reliability contract.
"""

from __future__ import annotations

from pathlib import Path

from hybrid.core.lifecycle import Fact
from hybrid.core.models import Caps, InstanceState
from tests.world.quick import STEP_S, quick_params
from tests.world.ray import all_done
from tests.world.world import World

GPU = {"GPU": 1.0}
S = InstanceState


def make_world(folder: Path, *, count: int = 3, lasts_s: float = 100.0) -> World:
    """Return a world with some rented nodes at work, the first of them quarantined."""
    params = quick_params(caps=Caps(node_count=200, gpu_count=800), lease_s=300.0)
    params = params.model_copy(
        update={"policy": params.policy.model_copy(update={"launches_per_tick": 100})}
    )
    world = World(folder, params=params, step_s=STEP_S)
    world.cloud.boot_s = 10.0
    world.ray.submit(8, GPU, 2000.0)
    world.ray.submit(4 * count, GPU, lasts_s)
    running = [S.RUNNING] * count
    world.run(200, until=lambda: [r.state for r in world.rows()] == running)
    # A bug somewhere: a fact that is not possible now.
    world.loop.book.apply(world.row(), Fact.LAUNCH_ACCEPTED)
    return world


def test_an_impossible_fact_quarantines_one_of_many_and_the_others_progress(
    fast_path: Path,
) -> None:
    world = make_world(fast_path, count=100)
    assert world.row().quarantine
    assert world.kinds().count("instance_quarantined") == 1

    world.run(400, until=lambda: sum(r.is_ended for r in world.rows()) == 99)

    assert not world.row().is_ended
    assert world.row().state is S.RUNNING


def test_nothing_touches_a_quarantined_instance_and_an_alarm_says_so(fast_path: Path) -> None:
    world = make_world(fast_path)
    row = world.row()
    lease_end_s = world.machines()[0].lease_end_s
    world.run(200)

    assert world.machines()[0].lease_end_s == lease_end_s, "its lease is not renewed"
    assert not [i for i, _ in world.ray.drains if i == row.instance_id]
    world.desk.publish()
    [alarm] = [a for a in world.desk.status().alarms if a.code == "quarantined"]
    assert alarm.subject == row.instance_id
    assert "launch_accepted is not possible in state running" in alarm.what


def test_a_quarantine_ends_when_its_lease_is_over_and_the_cloud_says_gone(fast_path: Path) -> None:
    world = make_world(fast_path)

    world.run(500, until=world.is_quiet)

    assert world.row().state is S.TERMINATED
    assert world.machines()[0].ended_by == "lease"


def test_a_quarantine_ends_also_when_the_cloud_forgot_the_machine(fast_path: Path) -> None:
    """The list never says gone: the direct question does."""
    world = make_world(fast_path)
    world.cloud.forgets_ended = True
    world.cloud.failing = {"list"}
    world.sleep(320.0)
    world.boot()
    world.cloud.failing = set()

    world.run(500, until=world.is_quiet)


def test_a_quarantined_intent_has_a_way_out_too(fast_path: Path) -> None:
    world = World(fast_path, params=quick_params(lease_s=100.0), step_s=STEP_S)
    world.cloud.failing = {"launch"}
    tasks = world.ray.submit(12, GPU, 400.0)
    world.run(60, until=lambda: bool(world.rows()))
    world.loop.book.apply(world.row(), Fact.DRAINED)
    assert world.row().quarantine

    world.run(600, until=lambda: world.row().is_ended)
    world.cloud.failing = set()
    world.run(800, until=all_done(tasks))


def test_a_quarantined_instance_counts_against_the_caps(fast_path: Path) -> None:
    world = make_world(fast_path)

    world.step()

    assert world.loop.commitment.node_count == 3


def test_a_quarantined_instance_cannot_join_or_be_drained(fast_path: Path) -> None:
    import pytest

    from hybrid.control.commands import RefusedError

    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.never_joins = True
    world.ray.submit(12, GPU, 400.0)
    world.run(60, until=lambda: bool(world.machines()))
    world.loop.book.apply(world.row(), Fact.DRAINED)
    [machine] = world.machines()

    with pytest.raises(RefusedError, match="no instance with this id"):
        world.desk.join(machine.spec.instance_id, machine.join_token)
    with pytest.raises(RefusedError, match="drained is not possible"):
        world.desk.drain(machine.spec.instance_id, deadline_s=None, owner="ann")
