"""Jobs on their way to Ray and back: nothing is started twice, nothing is lost without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.core.errors import LedgerError
from hybrid.core.models import Job, JobSpec, JobState
from tests.world.quick import STEP_S, quick_params
from tests.world.trace import Crash, Point
from tests.world.world import World

S = JobState
RUN = JobSpec(entrypoint="python train.py")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, params=quick_params(), step_s=STEP_S)
    world.run(2 * STEP_S)
    return world


def state(world: World, job: Job) -> JobState:
    return world.desk.job(job.job_id).state


def message(world: World, job: Job) -> str:
    return world.desk.job(job.job_id).message


def test_a_job_is_handed_over_followed_and_ended(world: World) -> None:
    job = world.desk.submit(RUN)
    assert job.state is S.QUEUED
    world.step()
    world.step()
    assert state(world, job) is S.RUNNING
    assert world.desk.job(job.job_id).started_at_s == world.clock.now_s()

    world.jobs.states[job.job_id] = S.SUCCEEDED
    world.step()

    ended = world.desk.job(job.job_id)
    assert (ended.state, ended.ended_at_s) == (S.SUCCEEDED, world.clock.now_s())
    kinds = [e.kind for e in world.ledger.events(subject=job.job_id)]
    assert kinds == ["job_queued", "job_submitted", "job_running", "job_succeeded"]


def test_a_job_began_when_ray_took_it(world: World) -> None:
    job = world.desk.submit(RUN)
    world.step()
    world.jobs.taken_at_s[job.job_id] = taken_at_s = world.clock.now_s() - 0.5
    world.run(3 * STEP_S)
    assert world.desk.job(job.job_id).started_at_s == taken_at_s


def test_a_job_that_ended_before_anybody_looked_has_run_all_the_same(world: World) -> None:
    job = world.desk.submit(RUN)
    world.step()
    world.jobs.taken_at_s[job.job_id] = taken_at_s = world.clock.now_s() - 0.5
    world.jobs.states[job.job_id] = S.SUCCEEDED
    world.run(3 * STEP_S)
    assert world.desk.job(job.job_id).started_at_s == taken_at_s


def test_a_driver_that_waited_in_ray_began_after_it_was_last_seen_waiting(world: World) -> None:
    job = world.desk.submit(RUN)
    world.step()
    world.jobs.taken_at_s[job.job_id] = world.clock.now_s()
    world.jobs.states[job.job_id] = S.SUBMITTED
    world.run(50)
    waited_at_s = world.clock.now_s()
    world.jobs.states[job.job_id] = S.RUNNING
    world.step()

    assert state(world, job) is S.RUNNING
    assert world.desk.job(job.job_id).started_at_s == pytest.approx(waited_at_s, abs=STEP_S)


def test_a_job_that_ray_refuses_fails_with_rays_words(world: World) -> None:
    job = world.desk.submit(JobSpec(entrypoint="refuse"))

    world.step()

    assert (state(world, job), message(world, job)) == (S.FAILED, "Ray refuses it")


def test_a_job_without_its_package_fails_and_says_so(world: World) -> None:
    job = world.desk.submit(RUN.model_copy(update={"package": "gone.zip"}))

    world.step()

    assert state(world, job) is S.FAILED
    assert "gone.zip" in message(world, job)


def test_jobs_wait_while_ray_or_its_dashboard_is_away(world: World) -> None:
    world.ray.is_silent = True
    job = world.desk.submit(RUN)
    world.run(60)
    assert state(world, job) is S.QUEUED
    world.ray.is_silent, world.jobs.is_silent = False, True
    world.run(60)
    assert state(world, job) is S.QUEUED

    world.jobs.is_silent = False
    world.run(10)

    assert state(world, job) is S.RUNNING


def test_a_queued_job_is_cancelled_at_once_while_ray_is_down(world: World) -> None:
    world.ray.is_silent = True
    job = world.desk.submit(RUN)
    world.desk.cancel(job.job_id)

    world.step()

    assert (state(world, job), message(world, job)) == (S.CANCELLED, "cancelled before it started")
    world.ray.is_silent = False
    world.run(20)
    assert world.jobs.starts == {}


def test_a_queued_job_whose_submission_got_no_answer_is_really_stopped(world: World) -> None:
    """Ray may run it: "cancelled before it started" would be a lie that burns GPUs."""
    world.jobs.answers_get_lost = True
    job = world.desk.submit(RUN)
    world.step()
    assert state(world, job) is S.QUEUED
    world.jobs.is_silent = True
    world.desk.cancel(job.job_id)
    world.run(100)
    assert state(world, job) is S.QUEUED, "unknown is not cancelled"

    world.jobs.is_silent = False
    world.run(15)

    assert state(world, job) is S.CANCELLED
    assert world.jobs.states[job.job_id] is S.CANCELLED


def test_a_cancelled_job_that_ray_never_got_ends_as_cancelled(world: World) -> None:
    world.jobs.is_silent = True
    job = world.desk.submit(RUN)
    world.step()
    world.desk.cancel(job.job_id)
    world.jobs.is_silent = False

    world.run(70)

    assert state(world, job) is S.CANCELLED
    assert "Ray does not know it" in message(world, job)
    assert world.jobs.starts == {}


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", ["submit", "save_job"])
def test_a_crash_around_a_submission_starts_the_job_once(
    world: World, call: str, is_after: bool
) -> None:
    job = world.desk.submit(RUN)

    def crash(point: Point) -> None:
        if point.call == call and point.is_after == is_after:
            raise Crash

    world.tracer.hook = crash
    with pytest.raises(Crash):
        world.run(30)
    world.tracer.hook = None
    world.boot()
    world.run(10)

    assert state(world, job) is S.RUNNING
    assert world.jobs.starts == {job.job_id: 1}


def test_a_cancel_after_a_crash_stops_what_ray_has(world: World) -> None:
    job = world.desk.submit(RUN)

    def crash(point: Point) -> None:
        if point.call == "submit" and point.is_after:
            raise Crash

    world.tracer.hook = crash
    with pytest.raises(Crash):
        world.run(30)
    world.tracer.hook = None
    world.boot()
    world.desk.cancel(job.job_id)
    world.run(15)

    assert state(world, job) is S.CANCELLED
    assert world.jobs.states[job.job_id] is S.CANCELLED


def test_a_running_job_is_cancelled_through_ray(world: World) -> None:
    job = world.desk.submit(RUN)
    world.run(10)

    world.desk.cancel(job.job_id)
    world.run(10)

    assert state(world, job) is S.CANCELLED
    assert world.jobs.stops == [job.job_id]


def test_cancelling_twice_or_after_the_end_changes_nothing(world: World) -> None:
    job = world.desk.submit(RUN)
    world.run(10)
    world.jobs.states[job.job_id] = S.SUCCEEDED
    world.run(5)

    again = world.desk.cancel(job.job_id)

    assert again.state is S.SUCCEEDED
    assert not again.is_cancel_asked


def test_a_job_that_ray_forgot_fails_after_a_minute_and_says_why(world: World) -> None:
    job = world.desk.submit(RUN)
    world.run(10)
    world.jobs.forget()

    world.run(55)
    assert state(world, job) is S.RUNNING
    world.run(15)

    assert state(world, job) is S.FAILED
    assert "its head was restarted" in message(world, job)
    assert world.jobs.starts == {job.job_id: 1}, "it is not started again behind the user's back"


def test_a_job_that_is_unknown_for_a_moment_is_not_lost(world: World) -> None:
    job = world.desk.submit(RUN)
    world.run(10)
    for _ in range(5):
        state_before = world.jobs.states.pop(job.job_id)
        world.run(30)
        world.jobs.states[job.job_id] = state_before
        world.run(5)

    assert state(world, job) is S.RUNNING


def test_one_job_that_cannot_be_submitted_does_not_stop_the_others(world: World) -> None:
    bad = world.desk.submit(RUN, job_id="bad")
    world.jobs.poisoned = {"bad"}
    good = [world.desk.submit(RUN) for _ in range(3)]

    world.run(40)

    assert {state(world, job) for job in good} == {S.RUNNING}
    assert state(world, bad) is S.QUEUED


def test_output_that_cannot_be_read_delays_one_job_and_only_for_a_minute(world: World) -> None:
    bad, good = world.desk.submit(RUN), world.desk.submit(RUN)
    world.run(10)
    world.jobs.broken_logs = {bad.job_id}
    world.jobs.states = dict.fromkeys(world.jobs.states, S.SUCCEEDED)
    world.step()
    assert (state(world, bad), state(world, good)) == (S.RUNNING, S.SUCCEEDED)

    world.run(70)

    assert state(world, bad) is S.SUCCEEDED


def test_the_output_is_kept_when_the_job_ends(world: World) -> None:
    job = world.desk.submit(RUN)
    world.run(10)
    world.jobs.states[job.job_id] = S.FAILED
    world.step()
    world.jobs.forget()

    assert list(world.desk.job_logs(job.job_id)) == [f"output of {job.job_id}\n"]


def test_a_package_goes_when_its_last_job_has_ended(world: World) -> None:
    world.packages.put("a.zip", b"")
    spec = RUN.model_copy(update={"package": "a.zip"})
    first, second = world.desk.submit(spec), world.desk.submit(spec)
    world.run(10)
    world.jobs.states[first.job_id] = S.SUCCEEDED
    world.run(10)
    assert "a.zip" in world.packages.stored

    world.jobs.states[second.job_id] = S.FAILED
    world.run(10)

    assert world.packages.stored == {}


def test_a_package_without_a_job_goes_in_time(world: World) -> None:
    world.packages.put("a.zip", b"")

    world.run(3_700)

    assert world.packages.stored == {}


def test_a_step_without_jobs_asks_nothing(world: World) -> None:
    world.tracer.is_recording = True
    world.run(20)

    assert not [p for p in world.tracer.points if p.who == "jobs"]


def test_a_cancelled_job_whose_start_could_not_be_noted_is_really_stopped(world: World) -> None:
    """Ray took it and the ledger did not: it is `queued` here and runs there."""
    world.may_fail = True
    job = world.desk.submit(RUN)

    def fail(point: Point) -> None:
        if point.call == "save_job" and not point.is_after:
            raise LedgerError("the disk is full")

    world.tracer.hook = fail
    world.step()
    world.tracer.hook = None
    assert (state(world, job), world.jobs.starts) == (S.QUEUED, {job.job_id: 1})
    world.desk.cancel(job.job_id)

    world.run(10)

    assert state(world, job) is S.CANCELLED
    assert world.jobs.states[job.job_id] is S.CANCELLED


def test_one_job_that_cannot_be_stopped_does_not_freeze_the_others(world: World) -> None:
    bad = [world.desk.submit(RUN, job_id=name) for name in ("bad-1", "bad-2")]
    ended, other = world.desk.submit(RUN), world.desk.submit(RUN)
    world.run(10)
    world.jobs.unstoppable = {job.job_id for job in bad}
    for job in (*bad, other):
        world.desk.cancel(job.job_id)
    world.jobs.states[ended.job_id] = S.SUCCEEDED
    new = world.desk.submit(RUN)

    world.run(20)

    assert [state(world, job) for job in bad] == [S.RUNNING, S.RUNNING]
    assert [state(world, job) for job in (ended, other, new)] == [
        S.SUCCEEDED,
        S.CANCELLED,
        S.RUNNING,
    ]
    world.jobs.unstoppable = set()
    world.run(10)
    assert [state(world, job) for job in bad] == [S.CANCELLED, S.CANCELLED]


def test_a_job_that_comes_while_the_hosts_join_waits_for_them(tmp_path: Path) -> None:
    world = World(tmp_path, params=quick_params(), step_s=STEP_S)
    for node in world.ray.nodes.values():
        node.is_dead = not node.is_head
    world.fleet.slow = set(world.fleet.shapes)
    job = world.desk.submit(RUN.model_copy(update={"gpus": 4}))

    world.run(60)

    assert not [n for n in world.ray.nodes.values() if n.host and not n.is_dead]
    assert state(world, job) is S.QUEUED
    assert world.alive() == [], "nothing is rented for it"
    world.fleet.slow = set()
    world.run(60, until=lambda: state(world, job) is S.RUNNING)


def test_the_history_of_a_job_does_not_show_its_command(world: World) -> None:
    """Events cannot be deleted, and commands hold secrets."""
    spec = JobSpec(entrypoint="TOKEN=canary python a.py", name="mine", env={"KEY": "canary"})
    job = world.desk.submit(spec)
    world.run(10)

    events = world.ledger.events(subject=job.job_id)

    assert events[0].message == "mine"
    assert not [event for event in events if "canary" in event.model_dump_json()]
