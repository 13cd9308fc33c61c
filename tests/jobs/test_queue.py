"""The queue on a cluster: jobs start where the policy says, save, move, come home, and end once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybrid.control.commands import RefusedError
from hybrid.core.errors import LedgerError
from hybrid.core.models import Job, JobClass, JobSpec, JobState, SavedWork
from hybrid.core.policy.jobs.params import JobParams
from tests.world.quick import STEP_S, roomy_params
from tests.world.trace import Point
from tests.world.world import World

S = JobState
SAVES = SavedWork(url="s3://bucket/run", save_s=5.0, load_s=5.0)
JOBS = JobParams(rent_after_s=10.0, min_run_s=20.0, pinned_run_s=20.0, guard_s=5.0)


def spec(gpus: float = 4.0, *, saves: bool = False, **changes: object) -> JobSpec:
    values = {"entrypoint": "python train.py", "gpus": gpus, "checkpoint": SAVES if saves else None}
    return JobSpec.model_validate({**values, **changes})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two hosts with 4 GPUs each, and a cloud with nodes of 4."""
    params = roomy_params()
    policy = params.policy.model_copy(update={"jobs": JOBS})
    world = World(tmp_path, params=params.model_copy(update={"policy": policy}), step_s=STEP_S)
    world.run(2 * STEP_S)
    return world


def job(world: World, of: Job) -> Job:
    return world.desk.job(of.job_id)


def states(world: World, *jobs: Job) -> list[JobState]:
    return [job(world, one).state for one in jobs]


def site(world: World, of: Job) -> str:
    """Return where a job runs: `onprem`, `cloud`, or `""`."""
    slots = job(world, of).slots
    return str(world.ray.nodes[slots[0].node_id].labels["site"]) if slots else ""


def kinds(world: World, of: Job) -> list[str]:
    return [event.kind for event in world.ledger.events(subject=of.job_id)]


def until(world: World, state: JobState, *jobs: Job, within_s: float = 400.0) -> None:
    world.run(within_s, until=lambda: all(s is state for s in states(world, *jobs)))


def test_a_job_is_given_to_ray_in_the_tick_that_finds_it(world: World) -> None:
    one = world.desk.submit(spec())
    world.step()
    assert states(world, one) == [S.SUBMITTED]


def test_a_job_gets_a_place_at_home_and_the_driver_is_bound_to_it(world: World) -> None:
    one = world.desk.submit(spec())
    until(world, S.RUNNING, one)

    assert site(world, one) == "onprem"
    [slot] = job(world, one).slots
    assert world.jobs.selectors[one.job_id] == {"ray.io/node-id": slot.node_id}
    assert kinds(world, one) == ["job_queued", "job_placed", "job_submitted", "job_running"]
    assert world.alive() == []


def test_what_home_cannot_hold_is_rented_for_after_its_wait_and_nodes_go_back(
    world: World,
) -> None:
    jobs = [world.desk.submit(spec(lasts_s=0)) for _ in range(3)]
    for one in jobs:
        world.jobs.lasts_s[one.job_id] = 100.0
    until(world, S.RUNNING, *jobs)

    assert [site(world, one) for one in jobs] == ["onprem", "onprem", "cloud"]
    until(world, S.SUCCEEDED, *jobs)
    world.run(400, until=world.is_quiet)
    world.assert_nothing_left()
    assert [e for e in world.kinds() if e == "instance_requested"] == ["instance_requested"]


def test_a_job_that_saves_comes_home_with_its_progress(world: World) -> None:
    first = [world.desk.submit(spec()) for _ in range(2)]
    until(world, S.RUNNING, *first)
    mover = world.desk.submit(spec(saves=True))
    world.jobs.lasts_s[mover.job_id] = 200.0
    until(world, S.RUNNING, mover)
    assert site(world, mover) == "cloud"
    world.run(30)
    world.desk.cancel(first[0].job_id)

    world.run(300, until=lambda: site(world, mover) == "onprem" and job(world, mover).attempt == 2)
    until(world, S.RUNNING, mover)
    moved = job(world, mover)
    assert moved.interruptions == 1
    assert moved.resume_from.startswith("s3://bucket/run/1-")
    assert moved.progress_s > 20
    attempt = world.jobs.attempts[moved.ray_id]
    assert attempt.before_s == pytest.approx(moved.progress_s, abs=2 * STEP_S)
    assert attempt.env["HYBRID_RESUME_FROM"] == moved.resume_from
    until(world, S.SUCCEEDED, mover)
    assert world.jobs.most_copies == 1
    assert job(world, mover).started_at_s is not None
    world.run(400, until=world.is_quiet)


def test_more_urgent_work_gets_the_place_and_the_other_goes_on_afterwards(world: World) -> None:
    low = [world.desk.submit(spec(saves=True, priority=10)) for _ in range(2)]
    until(world, S.RUNNING, *low)
    world.run(20)
    high = world.desk.submit(spec(priority=90))
    world.jobs.lasts_s[high.job_id] = 50.0
    world.desk.pause("out", owner="test")

    until(world, S.RUNNING, high)
    [stopped] = [one for one in low if job(world, one).state is S.QUEUED]
    assert "gave way" in job(world, stopped).message
    assert "job_preempt_asked" in kinds(world, stopped)
    until(world, S.SUCCEEDED, high)
    until(world, S.RUNNING, *low)
    assert job(world, stopped).attempt == 2
    assert world.jobs.most_copies == 1


def test_best_effort_work_leaves_without_saving_and_comes_back(world: World) -> None:
    fillers = [
        world.desk.submit(spec(job_class=JobClass.BEST_EFFORT, name=f"f{n}")) for n in range(3)
    ]
    world.run(100)
    assert sorted(states(world, *fillers)) == [S.QUEUED, S.RUNNING, S.RUNNING]
    assert world.alive() == [], "nothing is rented for it"

    now = world.desk.submit(spec())
    world.jobs.lasts_s[now.job_id] = 30.0
    world.run(5 * STEP_S, until=lambda: states(world, now) == [S.RUNNING])
    until(world, S.SUCCEEDED, now)
    world.run(50)
    assert states(world, *fillers).count(S.RUNNING) == 2
    assert world.alive() == []


def test_a_job_that_does_not_answer_goes_on_and_is_not_asked_again(world: World) -> None:
    first = [world.desk.submit(spec()) for _ in range(2)]
    until(world, S.RUNNING, *first)
    mover = world.desk.submit(spec(saves=True))
    world.jobs.deaf.add(mover.job_id)
    until(world, S.RUNNING, mover)
    world.run(30)
    world.desk.cancel(first[0].job_id)
    world.run(300)

    left = job(world, mover)
    assert (left.state, left.attempt, left.stop) == (S.RUNNING, 1, None)
    assert left.is_deaf
    assert kinds(world, mover).count("job_move_asked") == 1
    assert "job_stop_withdrawn" in kinds(world, mover)
    assert b"withdrawn" in world.jobs.notes[f"job:{mover.job_id}:1:ask"]
    assert site(world, mover) == "cloud"


def test_deaf_work_of_a_lower_priority_is_stopped_all_the_same(world: World) -> None:
    low = [world.desk.submit(spec(saves=True, priority=1)) for _ in range(2)]
    world.jobs.deaf |= {one.job_id for one in low}
    until(world, S.RUNNING, *low)
    kept = {one.job_id: world.jobs.save(one.job_id) for one in low}
    world.run(20)
    world.desk.pause("out", owner="test")
    high = world.desk.submit(spec(priority=90))
    until(world, S.RUNNING, high)

    [stopped] = [one for one in low if job(world, one).state is S.QUEUED]
    assert "job_not_saved" in kinds(world, stopped)
    assert job(world, stopped).resume_from == kept[stopped.job_id], "its last good checkpoint"


def test_a_job_with_checkpoints_survives_the_loss_of_its_node(world: World) -> None:
    one = world.desk.submit(spec(saves=True))
    until(world, S.RUNNING, one)
    world.run(30)
    url = world.jobs.save(one.job_id)
    world.run(20)
    [slot] = job(world, one).slots
    world.ray.kill(world.ray.nodes[slot.node_id])

    world.run(100, until=lambda: job(world, one).attempt == 2)
    until(world, S.RUNNING, one)
    assert job(world, one).resume_from == url
    assert 25 <= job(world, one).progress_s <= 35
    assert job(world, one).interruptions == 0


def test_a_job_without_checkpoints_and_retries_fails_with_its_node(world: World) -> None:
    one = world.desk.submit(spec())
    until(world, S.RUNNING, one)
    [slot] = job(world, one).slots
    world.ray.kill(world.ray.nodes[slot.node_id])
    until(world, S.FAILED, one)


def test_a_job_that_fails_is_tried_again_as_often_as_it_says(world: World) -> None:
    one = world.desk.submit(spec(retries=2))
    for number in (1, 2, 3):
        world.run(100, until=lambda n=number: job(world, one).attempt == n)  # type: ignore[misc]
        until(world, S.RUNNING, one)
        world.jobs._end(job(world, one).ray_id, S.FAILED)
        world.run(2 * STEP_S)
    assert states(world, one) == [S.FAILED]
    assert sorted(world.jobs.starts) == [one.job_id, f"{one.job_id}.2", f"{one.job_id}.3"]


def test_a_driver_without_gpus_is_tried_again_too(world: World) -> None:
    one = world.desk.submit(JobSpec(entrypoint="false", retries=1))
    until(world, S.RUNNING, one)
    world.jobs._end(one.job_id, S.FAILED)
    world.run(3 * STEP_S)
    assert job(world, one).ray_id == f"{one.job_id}.2"
    until(world, S.RUNNING, one)
    world.jobs._end(f"{one.job_id}.2", S.FAILED)
    world.run(2 * STEP_S)
    assert states(world, one) == [S.FAILED]


def test_a_gang_starts_on_all_its_nodes_or_none(world: World) -> None:
    blocker = world.desk.submit(spec())
    until(world, S.RUNNING, blocker)
    world.desk.pause("out", owner="test")
    gang = world.desk.submit(spec(nodes=2))
    world.run(60)
    assert states(world, gang) == [S.QUEUED]
    world.desk.cancel(blocker.job_id)
    until(world, S.RUNNING, gang)
    assert len({slot.node_id for slot in job(world, gang).slots}) == 2
    request = world.jobs.submitted[gang.job_id]
    assert (request.entrypoint, request.gpus) == ("python -m hybrid.job", 0)
    assert request.env["HYBRID_ENTRYPOINT"] == "python train.py"


def test_queued_suspended_and_impossible_jobs_can_be_cancelled(world: World) -> None:
    world.desk.pause("out", owner="test")
    running = [world.desk.submit(spec(saves=True, priority=1)) for _ in range(2)]
    until(world, S.RUNNING, *running)
    world.run(20)
    high = [world.desk.submit(spec(priority=9)) for _ in range(2)]
    until(world, S.RUNNING, *high)
    queued, impossible = world.desk.submit(spec()), world.desk.submit(spec(gpus=64))
    world.run(20)
    for one in (*running, queued, impossible):
        assert job(world, one).state is S.QUEUED
        world.desk.cancel(one.job_id)
    world.run(2 * STEP_S)
    assert states(world, *running, queued, impossible) == [S.CANCELLED] * 4


def test_a_job_on_a_node_that_must_end_saves_and_goes_on_elsewhere(world: World) -> None:
    blockers = [world.desk.submit(spec()) for _ in range(2)]
    until(world, S.RUNNING, *blockers)
    one = world.desk.submit(spec(saves=True))
    until(world, S.RUNNING, one)
    instance = world.loop.book.all()[0]
    world.run(20)
    world.desk.drain(instance.instance_id, deadline_s=50.0, owner="test")
    world.run(100, until=lambda: states(world, one) == [S.QUEUED])
    assert job(world, one).attempt == 1
    world.desk.cancel(blockers[0].job_id)

    world.run(200, until=lambda: job(world, one).attempt == 2)
    assert "job_leave_asked" in kinds(world, one)
    until(world, S.RUNNING, one)
    assert job(world, one).progress_s > 10
    assert world.jobs.most_copies == 1
    assert world.ray.killed_busy == []


def test_the_head_restarted_loses_no_job_that_may_start_anew(world: World) -> None:
    saves, plain = world.desk.submit(spec(saves=True)), world.desk.submit(spec())
    until(world, S.RUNNING, saves, plain)
    url = world.jobs.save(saves.job_id)
    world.run(70)
    for ray_id in list(world.jobs.attempts):
        world.jobs._end(ray_id, S.FAILED)
    world.jobs.forget()
    world.run(80)
    assert states(world, saves, plain) == [S.RUNNING, S.FAILED]
    assert job(world, saves).resume_from == url


def test_order_is_priority_then_submission_and_a_retry_keeps_its_place(world: World) -> None:
    world.desk.pause("out", owner="test")
    first = [world.desk.submit(spec(retries=1)) for _ in range(2)]
    until(world, S.RUNNING, *first)
    later = [world.desk.submit(spec()) for _ in range(3)]
    urgent = world.desk.submit(spec(priority=51))
    world.run(10)
    world.jobs._end(first[0].job_id, S.FAILED)
    until(world, S.RUNNING, urgent)
    assert states(world, first[0], *later) == [S.QUEUED] * 4
    world.jobs._end(urgent.job_id, S.SUCCEEDED)
    until(world, S.RUNNING, first[0])
    assert states(world, *later) == [S.QUEUED] * 3
    world.jobs._end(first[1].job_id, S.SUCCEEDED)
    until(world, S.RUNNING, later[0])
    assert states(world, *later[1:]) == [S.QUEUED] * 2


def test_a_checkpoint_without_a_place_is_refused(world: World) -> None:

    with pytest.raises(RefusedError, match=r"set jobs\.checkpoints"):
        world.desk.submit(spec(checkpoint=SavedWork()))


def test_going_down_starts_nothing_more(world: World) -> None:
    world.desk.pause("out", owner="test")
    jobs = [world.desk.submit(spec()) for _ in range(3)]
    until(world, S.RUNNING, *jobs[:2])
    world.desk.close(drain_s=100.0, owner="test")
    world.run(3 * STEP_S)
    assert states(world, *jobs) == [S.RUNNING, S.RUNNING, S.CANCELLED]


def test_waiting_jobs_say_why(world: World) -> None:
    world.desk.pause("out", owner="test")
    running = [world.desk.submit(spec()) for _ in range(2)]
    until(world, S.RUNNING, *running)
    first, second = world.desk.submit(spec()), world.desk.submit(spec())
    never = world.desk.submit(spec(gpus=64))
    gang = world.desk.submit(spec(nodes=5, site="onprem"))
    world.run(2 * STEP_S)

    world.desk.publish()
    said = {one.job_id: one.message for one in world.desk.jobs().jobs}
    assert said[first.job_id] == "waits for GPUs"
    assert said[second.job_id] == "waits for GPUs, 1 job before it"
    assert said[never.job_id].startswith("nothing here can hold it: it needs a node of 64 GPUs")
    assert "5 nodes of 4 GPUs with site onprem, and there are 2 such nodes" in said[gang.job_id]


def test_a_kept_place_whose_node_dies_is_given_back_and_another_found(world: World) -> None:
    low = [world.desk.submit(spec(saves=True, priority=1)) for _ in range(2)]
    world.jobs.deaf |= {one.job_id for one in low}
    until(world, S.RUNNING, *low)
    world.run(20)
    world.desk.pause("out", owner="test")
    high = world.desk.submit(spec(priority=90))
    world.step()
    [slot] = job(world, high).slots
    assert states(world, high) == [S.QUEUED], "its place is still held by a job that saves"
    world.ray.kill(world.ray.nodes[slot.node_id])

    world.run(2 * STEP_S)
    assert "job_unplaced" in kinds(world, high)
    until(world, S.RUNNING, high)
    assert job(world, high).slots[0].node_id != slot.node_id
    assert job(world, high).ray_id == high.job_id, "it was never given to Ray before"


@pytest.mark.parametrize("by_s", [3_600.0, -3_600.0])
def test_a_clock_that_is_set_makes_no_job_late_or_early(world: World, by_s: float) -> None:
    running = [world.desk.submit(spec()) for _ in range(2)]
    until(world, S.RUNNING, *running)
    waiting = world.desk.submit(spec(job_class=JobClass.LONG, saves=True))
    world.run(10)
    before = job(world, waiting)
    world.jump_before[world.loop.tick_count] = by_s
    world.run(60)

    after = job(world, waiting)
    assert after.created_at_s == before.created_at_s + by_s
    assert after.state is S.QUEUED
    assert world.alive() == [], "nothing is rented for it"
    assert job(world, running[0]).useful_from_s is not None
    assert states(world, *running) == [S.RUNNING, S.RUNNING]


def test_a_save_is_given_its_time_though_the_clock_is_set(world: World) -> None:
    low = [world.desk.submit(spec(saves=True, priority=1)) for _ in range(2)]
    world.jobs.deaf |= {one.job_id for one in low}
    until(world, S.RUNNING, *low)
    world.run(20)
    world.desk.pause("out", owner="test")
    world.desk.submit(spec(priority=90))
    world.run(2 * STEP_S)
    world.jump_before[world.loop.tick_count] = 3_600.0
    world.run(2 * STEP_S)
    assert states(world, *low) == [S.RUNNING, S.RUNNING], "it still has half a minute"
    world.run(60)
    assert states(world, *low).count(S.QUEUED) == 1


@pytest.mark.parametrize("by_s", [0.0, 3_600.0, -3_600.0])
def test_a_new_controller_gives_no_job_a_place_whose_holder_still_saves(
    world: World, by_s: float
) -> None:
    """`SimJobs` refuses a job whose node has no room. The clock may be set meanwhile."""
    low = [world.desk.submit(spec(saves=True, priority=1)) for _ in range(2)]
    world.jobs.deaf |= {one.job_id for one in low}
    until(world, S.RUNNING, *low)
    world.run(20)
    world.desk.pause("out", owner="test")
    high = world.desk.submit(spec(priority=90))
    world.run(2 * STEP_S)
    assert job(world, high).slots, "a place is kept for it"

    world.clock.jump(by_s)
    world.boot()
    world.step()
    until(world, S.RUNNING, high, within_s=90.0)

    assert states(world, *low).count(S.RUNNING) == 1
    assert world.jobs.starts[high.job_id] == 1


@pytest.mark.parametrize("is_after", [False, True], ids=["before-commit", "after-commit"])
@pytest.mark.parametrize("by_s", [3_600.0, -3_600.0])
def test_jobs_are_moved_once_although_a_write_fails_in_the_middle(
    world: World, by_s: float, is_after: bool
) -> None:
    for _ in range(4):
        world.desk.submit(spec())
    world.run(20)
    before = {one.job_id: one.created_at_s for one in world.ledger.jobs()}
    breach_at_s = world.loop.breach_since_s = world.clock.now_s()
    failed: list[Point] = []

    def fail(point: Point) -> None:
        if point.call == "save_job" and point.is_after == is_after and not failed:
            failed.append(point)
            raise LedgerError("disk full")

    world.clock.jump(by_s)
    world.tracer.hook = fail
    with pytest.raises(LedgerError):
        world.step()
    world.tracer.hook = None
    assert world.loop.breach_since_s == breach_at_s + by_s
    world.run(10)

    after = {one.job_id: one.created_at_s for one in world.ledger.jobs()}
    assert after == {job_id: at_s + by_s for job_id, at_s in before.items()}


def test_what_is_free_goes_to_the_more_urgent_of_two_that_were_given_one_node(
    world: World,
) -> None:
    """One of them is to wait for work that leaves; both must not be handed to Ray at once."""
    world.desk.pause("out", owner="test")
    full = world.desk.submit(spec(priority=99))
    filler = world.desk.submit(spec(1.0, job_class=JobClass.BEST_EFFORT, saves=True))
    until(world, S.RUNNING, full, filler)
    world.jobs.deaf.add(filler.job_id)
    less, more = world.desk.submit(spec(2.0, priority=10)), world.desk.submit(spec(2.0))

    world.step()

    assert job(world, less).slots == job(world, more).slots, "both have a place on one node"
    assert states(world, less, more) == [S.QUEUED, S.SUBMITTED]
    until(world, S.RUNNING, less)
    assert kinds(world, more).count("job_submitted") == 1


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("echo x", {"site": "onprem"}),
        ("python train.py --lr $LR", {"nodes": 2}),
        ("python -c 'print(1)'", {"nodes": 1}),
    ],
)
def test_a_command_that_cannot_run_in_a_group_is_refused_when_it_is_submitted(
    world: World, command: str, changes: dict[str, Any]
) -> None:
    with pytest.raises(RefusedError, match="which only a Python program can: write `python train"):
        world.desk.submit(spec(entrypoint=command, **changes))
    world.desk.submit(spec(entrypoint=command))
