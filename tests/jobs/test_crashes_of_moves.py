"""A controller that is killed at any point of the life of jobs that wait, save, move and give way.

Stories: two jobs fill home, a third goes to a rented node and comes home when there is room, and
best-effort work comes and leaves; an urgent job takes the place of one that saves, or of one that
does not, and a node dies. The controller dies before or after one call of it (to the ledger, to
Ray, to a cloud), the world goes on without it, and another takes over. In each history every job
ends once, no two attempts of one run at the same time, none starts twice, no place is given to
two, and what was saved is not done again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

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


def stay_home(world: World) -> None:
    world.desk.pause("out", owner="test")


MOVES: dict[float, Callable[[World], None]] = {
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
URGENT: dict[float, Callable[[World], None]] = {
    4.0: stay_home,
    5.0: submit("low1", 150.0, spec(saves=True, priority=1, retries=2)),
    6.0: submit("low2", 150.0, spec(saves=True, priority=1, retries=2)),
    60.0: submit("high", 30.0, spec(priority=90)),
    150.0: kill_node_of("low1"),
}
"""Home only: an urgent job takes the place of one that saves, or does not, and a node dies."""

ENDED = {"b1": JobState.CANCELLED}
"""How jobs end; those not named succeed."""


@dataclass(frozen=True)
class Tale:
    """What happens, to which jobs, and what has to be in it.

    Attributes:
        deaf: Jobs that never save.
        kinds: Events without which the story shows nothing.
    """

    name: str
    acts: dict[float, Callable[[World], None]]
    jobs: tuple[str, ...]
    kinds: frozenset[str]
    deaf: frozenset[str] = frozenset()


LOW = ("low1", "low2")
TALES = [
    Tale(
        "moves",
        MOVES,
        ("b1", "b2", "mover", "filler", "urgent", "low", "high"),
        frozenset({"job_move_asked", "job_saved", "job_preempt_asked", "job_cancelled"}),
    ),
    Tale(
        "urgent",
        URGENT,
        (*LOW, "high"),
        frozenset({"job_preempt_asked", "job_saved", "job_waits_again"}),
    ),
    Tale(
        "urgent-deaf",
        URGENT,
        (*LOW, "high"),
        frozenset({"job_preempt_asked", "job_not_saved", "job_waits_again"}),
        deaf=frozenset(LOW),
    ),
]


def play(
    folder: Path,
    tale: Tale,
    *,
    crash_at: tuple[int, ...] = (),
    pause_s: float = 0.0,
    loses_answers: bool = False,
) -> World:
    """Play a story, with crashes at some points and `pause_s` without a controller after each."""
    params = roomy_params()
    policy = params.policy.model_copy(update={"jobs": JOBS})
    params = params.model_copy(update={"policy": policy})
    world = World(folder, params=params, step_s=STEP_S, store=MemoryStore())
    world.may_kill_busy = True
    world.jobs.deaf |= tale.deaf
    world.tracer.is_recording = not crash_at

    def crash() -> None:
        raise Crash

    for number in crash_at:
        world.tracer.at(number, crash)
    due = sorted(tale.acts.items())
    began_s = world.clock.monotonic_s()
    while (now_s := world.clock.monotonic_s() - began_s) < END_S:
        # Ray's answers are lost in every third tick.
        world.jobs.answers_get_lost = loses_answers and world.loop.tick_count % 3 == 0
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


def hold(world: World, tale: Tale, said: str) -> None:
    """Hold what must be true of each history."""
    states = {job.job_id: job.state for job in world.ledger.jobs()}
    wanted = {job_id: ENDED.get(job_id, JobState.SUCCEEDED) for job_id in tale.jobs}
    assert states == wanted, f"{said}: {states}"
    assert world.jobs.most_copies == 1, f"{said}: two attempts of one job at once"
    assert set(world.jobs.starts.values()) == {1}, f"{said}: an attempt started twice"
    for ray_id, attempt in world.jobs.attempts.items():
        resumed = attempt.env.get("HYBRID_RESUME_FROM", "")
        assert not resumed or attempt.before_s > 0, f"{said}: {ray_id} goes on from nothing"
    assert world.is_quiet(), f"{said}: {world.describe()}"


def points(folder: Path, tale: Tale) -> list[Point]:
    world = play(folder, tale)
    hold(world, tale, "no crash")
    kinds = {event.kind for event in world.ledger.events(limit=10_000)}
    assert kinds >= tale.kinds, "or the story shows nothing"
    return [p for p in world.tracer.points if not p.is_read]


EACH_TALE = pytest.mark.parametrize("tale", TALES, ids=lambda tale: tale.name)


@EACH_TALE
def test_the_story_itself(tmp_path: Path, tale: Tale) -> None:
    assert len(points(tmp_path, tale)) > 80


@pytest.mark.slow
@pytest.mark.parametrize("pause_s", [0.0, 25.0])
@EACH_TALE
def test_a_crash_at_any_point_loses_and_doubles_no_job(
    tmp_path: Path, count_histories: Count, tale: Tale, pause_s: float
) -> None:
    for point in points(tmp_path / "first", tale)[:: 2 if pause_s else 1]:
        folder = tmp_path / str(point.number)
        world = play(folder, tale, crash_at=(point.number,), pause_s=pause_s)
        hold(world, tale, f"crash {point}, {pause_s:.0f} s away")
        count_histories(1)


@pytest.mark.slow
@EACH_TALE
def test_two_crashes_while_answers_get_lost_lose_and_double_no_job(
    tmp_path: Path, count_histories: Count, tale: Tale
) -> None:
    rng = Random(7)
    last = points(tmp_path / "first", tale)[-1].number
    for number in range(60):
        first = rng.randrange(1, last)
        crash_at = (first, first + rng.randrange(1, 60))
        pause_s = rng.choice([0.0, 5.0, 25.0])
        folder = tmp_path / str(number)
        world = play(folder, tale, crash_at=crash_at, pause_s=pause_s, loses_answers=True)
        hold(world, tale, f"crashes {crash_at}, {pause_s:.0f} s away each")
        count_histories(1)
