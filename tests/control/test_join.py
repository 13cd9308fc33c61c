"""A node gets the cluster's secret once, for a token that belongs to a live intent.

Items 33 and 34 of the reliability contract.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.control.commands import RefusedError
from hybrid.control.renting import join_token
from hybrid.core.errors import CapacityError
from hybrid.core.models import InstanceState
from tests.world.cloud import Machine
from tests.world.quick import STEP_S, quick_params
from tests.world.trace import Crash, Point
from tests.world.world import SECRET, World

GPU = {"GPU": 1.0}
S = InstanceState


@pytest.fixture
def world(fast_path: Path) -> World:
    """A world with one machine that has not joined yet."""
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.never_joins = True
    world.ray.submit(12, GPU, 500.0)
    world.run(60, until=lambda: bool(world.machines()))
    return world


def machine(world: World) -> Machine:
    return world.machines()[0]


def test_the_right_token_is_good_once(world: World) -> None:
    name, token = machine(world).spec.instance_id, machine(world).join_token

    assert world.desk.join(name, token) == "ray-token"
    with pytest.raises(RefusedError, match="used before"):
        world.desk.join(name, token)


def test_a_replayed_token_is_refused_by_the_next_controller_too(world: World) -> None:
    name, token = machine(world).spec.instance_id, machine(world).join_token
    world.desk.join(name, token)
    world.boot()

    with pytest.raises(RefusedError, match="used before"):
        world.desk.join(name, token)


@pytest.mark.parametrize(
    "token", ["", "x", "0" * 64, "\ud800", "\x00", "ключ", "a" * 100_000], ids=repr
)
def test_a_wrong_token_is_refused_and_does_not_burn_the_right_one(world: World, token: str) -> None:
    name = machine(world).spec.instance_id

    with pytest.raises(RefusedError, match="no instance with this id and token"):
        world.desk.join(name, token)

    assert world.desk.join(name, machine(world).join_token) == "ray-token"


def test_the_token_of_another_instance_or_attempt_is_refused(world: World) -> None:
    name = machine(world).spec.instance_id

    for wrong in (join_token(SECRET, "i-9999", 1), join_token(SECRET, name, 2)):
        with pytest.raises(RefusedError):
            world.desk.join(name, wrong)


def test_an_unknown_instance_is_refused_even_with_a_true_token(world: World) -> None:
    with pytest.raises(RefusedError):
        world.desk.join("i-unknown", join_token(SECRET, "i-unknown", 1))


def test_an_ended_instance_is_refused(world: World) -> None:
    world.cloud.kill(machine(world))
    world.run(20, until=lambda: world.row().is_ended)

    with pytest.raises(RefusedError):
        world.desk.join(machine(world).spec.instance_id, machine(world).join_token)


def test_an_instance_that_was_given_up_is_refused(world: World) -> None:
    world.cloud.ends_slowly_s = 100.0
    world.run(200, until=lambda: world.row().state is S.TERMINATING)

    with pytest.raises(RefusedError):
        world.desk.join(machine(world).spec.instance_id, machine(world).join_token)


def test_a_node_may_join_before_the_create_call_was_answered(fast_path: Path) -> None:
    """The answer was lost and the list lags: the token is the better proof."""
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.boot_s, world.cloud.hide_lists, world.cloud.list_lag_s = 5.0, 100, 500.0
    world.cloud.launch_faults = ["lost"]
    tasks = world.ray.submit(12, GPU, 200.0)
    world.run(60, until=lambda: bool(world.machines()))
    world.cloud.failing = {"launch"}

    world.run(20, until=lambda: world.row().state is S.RUNNING)
    world.run(200)

    assert all(t.deaths == 0 for t in tasks)
    machine(world).hidden_lists = 0
    world.cloud.failing = set()
    world.run(600, until=world.is_quiet)
    assert all(t.deaths == 0 for t in tasks)


def test_a_node_that_joined_saves_its_machine_while_ray_and_the_cloud_are_silent(
    fast_path: Path,
) -> None:
    """Three faults at once: the answer was lost, a repeat is refused, Ray cannot be seen."""
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.boot_s, world.cloud.hide_lists, world.cloud.list_lag_s = 5.0, 10, 60.0
    world.cloud.launch_faults = ["lost", CapacityError("sold out", provider="sim")]
    tasks = world.ray.submit(12, GPU, 200.0)
    world.run(60, until=lambda: bool(world.machines()))
    world.ray.is_silent = True

    world.run(100)
    assert world.row().state is S.BOOTING
    world.ray.is_silent = False
    world.run(600, until=world.is_quiet)

    assert all(t.deaths == 0 for t in tasks)
    assert len(world.machines()) == 1


def test_a_crash_in_the_middle_of_a_join_costs_that_machine_and_nothing_else(
    fast_path: Path,
) -> None:
    """The token is burnt and the node is refused: it is ended, and the next one serves."""
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.boot_s = 10.0
    tasks = world.ray.submit(12, GPU, 60.0)
    world.run(60, until=lambda: bool(world.machines()))
    world.ledger.mark_joined(machine(world).spec.instance_id, now_s=world.clock.now_s())
    world.boot()

    world.run(600, until=lambda: all(t.is_done for t in tasks))
    world.run(300, until=world.is_quiet)

    assert [r.state for r in world.rows()] == [S.TERMINATED, S.TERMINATED]
    assert "join refused" in world.rows()[0].problem or world.machines()[0].problem


def test_refusals_are_written_down_but_cannot_fill_the_disk(world: World) -> None:
    for _ in range(500):
        with pytest.raises(RefusedError):
            world.desk.join("i-" + "x" * 5000, "guess")
    world.clock.advance(11.0)
    with pytest.raises(RefusedError):
        world.desk.join("i-last", "guess")

    refused = [e for e in world.ledger.events(limit=10_000) if e.kind == "join_refused"]
    assert len(refused) == 2
    assert refused[1].facts["count"] == 500
    assert all(len(e.subject) <= 100 for e in refused)


def test_tokens_are_in_no_row_and_no_event(world: World) -> None:
    """Item 33: nothing secret is stored. The token is derived from a key that is a file."""
    world.desk.join(machine(world).spec.instance_id, machine(world).join_token)
    world.step()
    world.ledger.close()

    stored = b"".join(f.read_bytes() for f in world.folder.iterdir())

    assert machine(world).join_token.encode() not in stored
    assert b"ray-token" not in stored
    assert SECRET not in stored.replace(b"secrets", b"")


def test_a_crash_before_the_token_is_burnt_leaves_it_good(world: World) -> None:
    name, token = machine(world).spec.instance_id, machine(world).join_token

    def crash(point: Point) -> None:
        raise Crash

    traced = world.tracer.wrap(world.ledger, "ledger")
    world.desk.ledger = traced
    world.tracer.hook = crash
    with pytest.raises(Crash):
        world.desk.join(name, token)
    world.tracer.hook = None
    world.boot()

    assert world.desk.join(name, token) == "ray-token"
