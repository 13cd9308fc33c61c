"""What the node of a rented instance says of itself reaches people, and ends what cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.control.commands import RefusedError
from hybrid.control.renting import join_token
from hybrid.control.reports import Reports
from hybrid.core.models import InstanceState
from tests.world.cloud import Machine
from tests.world.quick import STEP_S, quick_params
from tests.world.world import SECRET, World

GPU = {"GPU": 1.0}
S = InstanceState
WRONG_RAY = "this image has Ray 2.59.0 and the cluster has 2.60.0"


@pytest.fixture
def world(fast_path: Path) -> World:
    """A world with one machine that has not joined yet."""
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.never_joins = True
    world.ray.submit(12, GPU, 500.0)
    world.run(60, until=lambda: bool(world.machines()) and world.row().state is S.BOOTING)
    return world


def machine(world: World) -> Machine:
    return world.machines()[0]


def report(world: World, phase: str, problem: str = "", *, token: str | None = None) -> None:
    name = machine(world).spec.instance_id
    given = machine(world).join_token if token is None else token
    world.desk.report(name, given, phase=phase, problem=problem)


def reported(world: World) -> list[str]:
    return [e.message for e in world.ledger.events(limit=10_000) if e.kind == "node_reported"]


def why(world: World) -> str:
    name = machine(world).spec.instance_id
    world.desk.publish()
    return next(node.why for node in world.desk.nodes().nodes if node.name == name)


def test_a_node_that_cannot_work_is_ended_at_once_and_its_offer_rests_with_the_reason(
    world: World,
) -> None:
    report(world, "failed", WRONG_RAY)
    world.step()

    row = world.row()
    assert row.state in (S.TERMINATING, S.TERMINATED)
    assert row.problem == f"its node: {WRONG_RAY}"
    (failure,) = world.ledger.failures()
    assert (failure.error, failure.message) == ("JoinError", f"its node: {WRONG_RAY}")


def test_a_node_that_cannot_work_is_ended_before_the_create_call_was_answered(
    fast_path: Path,
) -> None:
    """It looks at its machine before it joins, so this may be the first that is heard of it."""
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.never_joins, world.cloud.hide_lists, world.cloud.list_lag_s = True, 3, 5.0
    world.cloud.launch_faults = ["lost"]
    world.ray.submit(12, GPU, 500.0)
    world.run(60, until=lambda: bool(world.machines()))
    world.cloud.failing = {"launch"}
    assert world.row().state is S.REQUESTED

    report(world, "failed", WRONG_RAY)
    world.step()

    assert world.rows()[0].state is S.TERMINATING
    assert world.rows()[0].problem.endswith(WRONG_RAY)


def test_progress_is_shown_until_it_is_a_node(world: World) -> None:
    world.step()
    assert "its node" not in why(world)

    report(world, "starting")
    world.step()

    assert why(world) == "its node: starting"
    assert world.desk.instances().instances[0].problem == ""
    assert world.row().state is S.BOOTING


def test_a_complaint_is_shown_as_the_problem_and_goes_away_with_it(world: World) -> None:
    report(world, "joining", "the controller at http://x did not answer")
    world.step()

    words = "its node: the controller at http://x did not answer"
    assert why(world) == words
    assert world.desk.instances().instances[0].problem == words
    assert world.desk.status().instances[0].problem == words
    assert world.row().state is S.BOOTING

    report(world, "starting")
    world.step()

    assert world.desk.instances().instances[0].problem == ""


def test_only_changes_are_events(world: World) -> None:
    for problem in ("", "", "no route", "no route", ""):
        report(world, "joining", problem)

    assert reported(world) == ["its node: joining", "its node: no route", "its node: joining"]


def test_reports_cannot_fill_the_disk(world: World) -> None:
    for number in range(300):
        report(world, "joining", f"problem {number}")

    assert len(reported(world)) == 100
    world.step()
    assert why(world) == "its node: problem 299"


def test_words_of_a_node_are_one_plain_line(world: World) -> None:
    report(world, "joining", "red \x1b[31m\nnext\tline\u202e \x00end" + "x" * 5000)

    (message,) = reported(world)
    assert message.isprintable()
    assert message.startswith("its node: red [31m next line end")
    assert len(message) < 2100


def test_a_node_may_report_after_its_token_was_traded(world: World) -> None:
    world.desk.join(machine(world).spec.instance_id, machine(world).join_token)

    report(world, "failed", "`ray start` ended with exit code 1")
    world.step()

    assert "exit code 1" in world.rows()[0].problem


@pytest.mark.parametrize("token", ["", "x", "0" * 64, "\ud800", "ключ"], ids=repr)
def test_a_report_with_a_wrong_token_is_refused(world: World, token: str) -> None:
    with pytest.raises(RefusedError, match="no instance with this id and token"):
        report(world, "failed", "not true", token=token)

    world.step()
    assert world.row().state is S.BOOTING
    assert reported(world) == []


def test_a_report_of_another_attempt_is_refused(world: World) -> None:
    name = machine(world).spec.instance_id

    with pytest.raises(RefusedError):
        report(world, "failed", token=join_token(SECRET, name, 2))


def test_a_report_of_an_ended_instance_is_refused(world: World) -> None:
    world.cloud.kill(machine(world))
    world.run(20, until=lambda: world.rows()[0].is_ended)

    with pytest.raises(RefusedError):
        report(world, "failed", "too late")


def test_a_node_at_work_is_not_ended_by_its_own_word(fast_path: Path) -> None:
    """Ray sees it alive: what runs there goes on."""
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    tasks = world.ray.submit(12, GPU, 100.0)
    world.run(200, until=lambda: any(r.state is S.RUNNING for r in world.rows()))

    report(world, "failed", "confused")
    world.run(600, until=lambda: all(t.is_done for t in tasks))

    assert all(t.deaths == 0 for t in tasks)


def test_a_broken_node_that_repeats_itself_is_heard_by_the_next_controller(world: World) -> None:
    report(world, "failed", WRONG_RAY)
    world.boot()
    world.step()
    assert world.row().state is S.BOOTING  # what was in memory is lost

    report(world, "failed", WRONG_RAY)
    world.step()

    assert world.rows()[0].problem.endswith(WRONG_RAY)


def test_what_is_no_more_is_forgotten() -> None:
    reports = Reports()
    reports.note("i-1", "failed", "a")
    reports.note("i-2", "running", "")

    reports.keep_only({"i-2"})

    assert reports.get("i-1") is None
    assert reports.broken("i-1") == ""
    assert reports.progress() == {"i-2": "its node: running"}


def test_the_reason_is_still_told_when_the_machine_is_gone(world: World) -> None:
    report(world, "failed", WRONG_RAY)
    world.run(200, until=lambda: world.rows()[0].is_ended)

    assert world.rows()[0].problem == f"its node: {WRONG_RAY}"
