"""A controller that is killed at any point of the life of jobs that wait, save, move and give way.

One story: two jobs fill home, a third goes to a rented node and comes home when there is room; an
urgent one takes the place of one that saves; best-effort work comes and leaves; a node dies. The
controller dies before or after one call of it (to the ledger, to Ray, to a cloud), the world goes
on without it, and another takes over. In each history every job ends once, no two attempts of one
run at the same time, none starts twice, and what was saved is not done again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid.core.models import JobClass, JobSpec, JobState, SavedWork
from hybrid.core.policy.jobs.params import JobParams
from tests.world.fixtures import Count
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, roomy_params
from tests.world.trace import Crash, Point
from tests.world.world import World

SAVES = SavedWork(url="s3://bucket/run", save_s=5.0, load_s=5.0)
JOBS = JobParams(rent_after_s=5.0, min_run_s=20.0, pinned_run_s=20.0, guard_s=5.0)
END_S = 700.0


def spec(gpus: float = 4.0, *, saves: bool = False, **changes: object) -> JobSpec:
    values = {"entrypoint": "python train.py", "gpus": gpus, "checkpoint": SAVES if saves else None}
    return JobSpec.model_validate({**values, **changes})


def submit(job_id: str, lasts_s: float, what: JobSpec) -> Callable[[World], None]:
    def act(world: World) -> None:
        world.jobs.lasts_s[job_id] = lasts_s
        world.desk.submit(what, job_id=job_id)

    return act


def cancel(job_id: str) -> Callable[[World], None]:
    def act(world: World) -> None:
        world.desk.cancel(job_id)

    return act


def kill_node_of(job_id: str) -> Callable[[World], None]:
    def act(world: World) -> None:
        slots = world.desk.job(job_id).slots
        if slots and not world.ray.nodes[slots[0].node_id].instance_id:
            world.ray.kill(world.ray.nodes[slots[0].node_id])

    return act


STORY: dict[float, Callable[[World], None]] = {
    5.0: submit("b1", 1e9, spec()),
    6.0: submit("b2", 120.0, spec()),
    20.0: submit("mover", 150.0, spec(saves=True, retries=2)),
    95.0: cancel("b1"),
    150.0: submit("filler", 40.0, spec(job_class=JobClass.BEST_EFFORT)),
    170.0: submit("urgent", 30.0, spec(priority=90)),
    215.0: submit("low", 60.0, spec(saves=True, priority=1, retries=2)),
    230.0: submit("high", 30.0, spec(priority=99, site="onprem")),
    280.0: kill_node_of("low"),
}
ENDED = {"b1": JobState.CANCELLED}
"""How jobs end; those not named succeed."""


def play(folder: Path, *, crash_at: int | None = None, pause_s: float = 0.0) -> World:
    """Play the story, with a crash at one point and `pause_s` without a controller after it."""
    params = roomy_params()
    policy = params.policy.model_copy(update={"jobs": JOBS})
    params = params.model_copy(update={"policy": policy})
    world = World(folder, params=params, step_s=STEP_S, store=MemoryStore())
    world.may_kill_busy = True
    world.tracer.is_recording = crash_at is None

    def crash() -> None:
        raise Crash

    if crash_at is not None:
        world.tracer.at(crash_at, crash)
    due = sorted(STORY.items())
    began_s = world.clock.monotonic_s()
    while (now_s := world.clock.monotonic_s() - began_s) < END_S:
        try:
            while due and due[0][0] <= now_s:
                due[0][1](world)
                due.pop(0)
            world.step()
        except Crash:
            world.sleep(pause_s)
            world.boot()
        if not due and is_over(world):
            break
    return world


def is_over(world: World) -> bool:
    return all(job.state.is_ended for job in world.ledger.jobs()) and world.is_quiet()


def hold(world: World, said: str) -> None:
    """Hold what must be true of each history."""
    jobs = {job.job_id: job for job in world.ledger.jobs()}
    states = {job_id: job.state for job_id, job in jobs.items()}
    wanted = {
        job_id: ENDED.get(job_id, JobState.SUCCEEDED)
        for job_id in ("b1", "b2", "mover", "filler", "urgent", "low", "high")
    }
    assert states == wanted, f"{said}: {states}"
    assert world.jobs.most_copies == 1, f"{said}: two attempts of one job at once"
    assert set(world.jobs.starts.values()) == {1}, f"{said}: an attempt started twice"
    for ray_id, attempt in world.jobs.attempts.items():
        resumed = attempt.env.get("HYBRID_RESUME_FROM", "")
        assert not resumed or attempt.before_s > 0, f"{said}: {ray_id} goes on from nothing"
    assert world.is_quiet(), f"{said}: {world.describe()}"


def points(folder: Path) -> list[Point]:
    world = play(folder)
    hold(world, "no crash")
    moved = world.ledger.job("mover")
    assert moved is not None
    assert moved.attempt >= 2, "the story has a move in it"
    assert len(world.jobs.attempts) > 9, "and jobs that were stopped and went on"
    return [p for p in world.tracer.points if not p.is_read]


def test_the_story_itself(tmp_path: Path) -> None:
    assert len(points(tmp_path)) > 150


@pytest.mark.slow
@pytest.mark.parametrize("pause_s", [0.0, 25.0])
def test_a_crash_at_any_point_loses_and_doubles_no_job(
    tmp_path: Path, count_histories: Count, pause_s: float
) -> None:
    for point in points(tmp_path / "first")[:: 2 if pause_s else 1]:
        world = play(tmp_path / str(point.number), crash_at=point.number, pause_s=pause_s)
        hold(world, f"crash {point}, {pause_s:.0f} s away")
        count_histories(1)
