"""What users may ask, and what they are told when it cannot be done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hybrid.control.commands import RefusedError
from hybrid.control.mailbox import Mailbox
from hybrid.core.errors import ClusterError, FencedError, JobError
from hybrid.core.models import InstanceState, JobSpec, JobState
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World

GPU = {"GPU": 1.0}
RUN = JobSpec(entrypoint="python train.py")
S = InstanceState


@pytest.fixture
def world(fast_path: Path) -> World:
    """A world with two rented nodes at work: i-0001 and i-0002."""
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.boot_s = 10.0
    world.ray.submit(16, GPU, 5000.0)
    world.run(100, until=lambda: [r.state for r in world.rows()] == [S.RUNNING] * 2)
    return world


# --- drain ----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["i-0001", "node-3"], ids=["instance-id", "node-id"])
def test_drain_takes_an_instance_by_either_of_its_ids(world: World, target: str) -> None:
    answer = world.desk.drain(target, deadline_s=90.0, owner="ann")

    assert answer.facts == {"instance_id": "i-0001", "deadline_s": 90.0}
    row = world.row()
    assert (row.state, row.drain_kind) == (S.DRAINING, "busy")
    assert row.deadline_at_s == world.clock.now_s() + 90.0
    assert row.drain_reason is not None
    assert row.drain_reason.message == "drained by ann"


def test_drain_takes_a_unique_prefix(world: World) -> None:
    world.desk.drain("i-0002", deadline_s=None, owner="ann")
    world.run(200, until=lambda: world.rows()[1].is_ended)

    assert world.desk.drain("i-", deadline_s=None, owner="ann").facts["instance_id"] == "i-0001"


def test_an_exact_id_wins_over_longer_ones(world: World) -> None:
    row = world.row()
    longer = row.model_copy(update={"instance_id": "i-00012", "state": S.REQUESTED})
    world.loop.book.add(longer, caps=world.params.caps, exit_s=0.0)

    assert world.desk.drain("i-0001", deadline_s=None, owner="a").facts["instance_id"] == "i-0001"


def test_drain_without_a_deadline_uses_the_configured_one(world: World) -> None:
    answer = world.desk.drain("i-0001", deadline_s=None, owner="ann")

    assert answer.facts["deadline_s"] == world.params.policy.drain_s


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        ("i-000", RefusedError, "names several instances: i-0001, i-0002; give more of the id"),
        ("i-7", JobError, "no rented instance is called 'i-7'; live ones: i-0001, i-0002"),
        ("", JobError, "no rented instance is called ''"),
        ("host-0", RefusedError, "host-0 is on-prem"),
        ("head", RefusedError, "head is on-prem"),
    ],
)
def test_drain_says_why_it_will_not(
    world: World, target: str, error: type[Exception], words: str
) -> None:
    before = world.rows()

    with pytest.raises(error, match=words):
        world.desk.drain(target, deadline_s=None, owner="ann")

    assert world.rows() == before
    assert world.ray.drains == []


def test_what_drains_already_is_not_drained_again(world: World) -> None:
    world.desk.drain("i-0001", deadline_s=50.0, owner="ann")

    with pytest.raises(RefusedError, match="i-0001 cannot be drained: it is draining"):
        world.desk.drain("i-0001", deadline_s=5000.0, owner="bob")


def test_dry_run_drains_nothing(world: World) -> None:
    world.desk.pause("dry-run", owner="ann")

    with pytest.raises(RefusedError, match="dry-run is on"):
        world.desk.drain("i-0001", deadline_s=None, owner="ann")


# --- switches -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("direction", "on"),
    [
        ("out", {"is_out_paused"}),
        ("in", {"is_in_paused"}),
        ("all", {"is_out_paused", "is_in_paused"}),
        ("dry-run", {"is_dry_run"}),
    ],
)
def test_pause_and_resume_are_kept_over_a_restart(
    world: World, direction: str, on: set[str]
) -> None:
    world.desk.pause(direction, owner="ann")
    world.boot()
    mode = world.ledger.mode()
    assert {name for name, value in mode if value is True} == on
    assert mode.owner == "ann"

    world.desk.resume(direction, owner="bob")

    assert not any(value is True for _, value in world.ledger.mode())
    assert world.kinds()[-2:] == ["paused", "resumed"] or "resumed" in world.kinds()


def test_an_unknown_direction_is_refused(world: World) -> None:
    with pytest.raises(RefusedError, match="choose one of out, in, all, dry-run"):
        world.desk.pause("sideways", owner="ann")


def test_resuming_all_ends_a_dry_run_and_pausing_all_begins_none(world: World) -> None:
    world.desk.pause("all", owner="ann")
    assert not world.ledger.mode().is_dry_run
    world.desk.pause("dry-run", owner="ann")

    world.desk.resume("all", owner="bob")

    mode = world.ledger.mode()
    assert (mode.is_out_paused, mode.is_in_paused, mode.is_dry_run) == (False, False, False)


def test_a_dry_run_collects_nothing_and_still_looks(world: World) -> None:
    world.desk.pause("dry-run", owner="ann")

    with pytest.raises(RefusedError, match="hybrid resume dry-run"):
        world.desk.gc(is_dry_run=False)

    assert world.desk.gc(is_dry_run=True).is_dry_run


def test_resuming_one_direction_leaves_the_other_paused(world: World) -> None:
    world.desk.pause("all", owner="ann")

    world.desk.resume("out", owner="ann")

    mode = world.ledger.mode()
    assert (mode.is_out_paused, mode.is_in_paused) == (False, True)


# --- jobs -----------------------------------------------------------------------------------


def test_the_same_job_id_is_the_same_job(world: World) -> None:
    first = world.desk.submit(RUN, job_id="mine")
    world.run(10)

    again = world.desk.submit(RUN, job_id="mine")

    assert again.created_at_s == first.created_at_s
    assert again.state is JobState.RUNNING
    assert len(world.ledger.jobs()) == 1


def test_jobs_without_an_id_get_one_each(world: World) -> None:
    ids = {world.desk.submit(RUN).job_id for _ in range(5)}

    assert len(ids) == 5


def test_no_job_is_taken_while_going_down(world: World) -> None:
    world.desk.close(drain_s=1000.0, owner="ann")
    world.step()

    with pytest.raises(RefusedError, match="going down"):
        world.desk.submit(RUN)


def test_an_unknown_job_is_an_error_that_says_where_to_look(world: World) -> None:
    for ask in (world.desk.job, world.desk.cancel):
        with pytest.raises(JobError, match="there is no job 'nope'; `hybrid jobs` lists them"):
            ask("nope")
    with pytest.raises(JobError, match="there is no job"):
        list(world.desk.job_logs("nope"))


def test_a_queued_job_has_no_output_yet(world: World) -> None:
    world.jobs.is_silent = True
    job = world.desk.submit(RUN)

    assert list(world.desk.job_logs(job.job_id)) == []


def test_following_a_queued_job_waits_for_it(world: World) -> None:
    job = world.desk.submit(RUN)
    lines: Iterator[str] = world.desk.job_logs(job.job_id, is_following=True)
    assert [next(lines) for _ in range(3)] == ["", "", ""]

    world.run(10)

    assert "".join(lines) == f"output of {job.job_id}\n"


def test_following_a_job_that_is_cancelled_before_it_started_ends(world: World) -> None:
    world.ray.is_silent = True
    job = world.desk.submit(RUN)
    lines = world.desk.job_logs(job.job_id, is_following=True)
    next(lines)
    world.desk.cancel(job.job_id)
    world.step()

    with pytest.raises(JobError, match=r"no output .cancelled: cancelled before it started"):
        list(lines)


def test_the_output_of_a_refused_job_is_the_refusal(world: World) -> None:
    job = world.desk.submit(JobSpec(entrypoint="refuse"))
    world.step()

    with pytest.raises(JobError, match=r"has no output .failed: Ray refuses it"):
        list(world.desk.job_logs(job.job_id))


def test_an_upload_is_stored_for_the_job_that_names_it(world: World) -> None:
    assert world.desk.upload("abc.zip", b"PK").facts == {"byte_count": 2}

    job = world.desk.submit(RUN.model_copy(update={"package": "abc.zip"}))
    world.run(10)

    assert world.desk.job(job.job_id).state is JobState.RUNNING


# --- the mailbox ----------------------------------------------------------------------------


def test_the_mailbox_runs_calls_in_the_loops_thread_and_hands_back_what_they_say() -> None:
    mailbox = Mailbox()
    answers: list[object] = []

    def ask() -> None:
        answers.append(mailbox.ask(threading.get_ident))

    thread = threading.Thread(target=ask)
    thread.start()
    mailbox.wait(5.0)
    mailbox.serve()
    thread.join(5.0)

    assert answers == [threading.get_ident()]


def test_a_loop_that_does_not_come_is_a_clear_error() -> None:
    with pytest.raises(ClusterError, match=r"has been busy for 0 s .* nothing was done"):
        Mailbox().ask(lambda: 1, timeout_s=0.01)


@pytest.mark.parametrize("error", [JobError("no"), FencedError("gone")], ids=["job", "fenced"])
def test_an_error_of_a_call_reaches_its_caller_and_not_the_loop(error: Exception) -> None:
    mailbox, seen = _asking(error)

    mailbox.serve()

    assert seen() is error


def test_a_bug_in_a_call_reaches_its_caller_and_costs_the_loop_no_tick() -> None:
    bug = ZeroDivisionError("a bug")
    mailbox, seen = _asking(bug)

    mailbox.serve()

    assert seen() is bug


def _asking(error: Exception) -> tuple[Mailbox, Callable[[], Exception]]:
    """Return a mailbox that another thread asks something that fails, and what it got."""
    mailbox = Mailbox()
    seen: list[Exception] = []

    def fail() -> None:
        raise error

    def ask() -> None:
        try:
            mailbox.ask(fail, timeout_s=5.0)
        except type(error) as found:
            seen.append(found)

    thread = threading.Thread(target=ask)
    thread.start()
    mailbox.wait(5.0)

    def result() -> Exception:
        thread.join(5.0)
        return seen[0]

    return mailbox, result
