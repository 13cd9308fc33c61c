"""What ten thousand jobs that wait cost in each tick.

A program of its own (`python -m scripts.bench_parts.waiting`), see `alone`. Ray and the clouds
answer at once; the ledger is a real SQLite file on disk.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hybrid.core.models import Job, JobClass, JobSpec, SavedWork
from hybrid.core.policy.decide import decide
from scripts.bench_parts import alone
from scripts.bench_parts.figures import Figure, Times, timed
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World

JOBS = 10_000
HOSTS = 64
_TARGET_MS = 50.0
_USERS = 40


def measure() -> list[Figure]:
    """Measure in a process of its own."""
    return alone.measure("waiting")


def figures(*, jobs: int = JOBS, runs: int = 30) -> Iterator[Figure]:
    """Yield what a tick does for jobs that wait, and what a whole tick takes with and without."""
    for kind, words in (
        ("equal", "all of one kind"),
        ("mixed", "of eight sizes, three classes and all priorities"),
    ):
        with _world(is_mixed=kind == "mixed") as world:
            without = timed(lambda world=world: _tick(world), runs=runs)  # type: ignore[misc]
            _fill(world, jobs, is_mixed=kind == "mixed")
            yield _scan(world, f"queue_scan_{kind}_ms", f"{jobs:,} queued jobs {words}", runs)
            yield _ticks(world, f"queue_tick_{kind}_ms", f"{jobs:,} queued jobs", runs, without)


def _scan(world: World, name: str, words: str, runs: int) -> Figure:
    """Measure the queue's part of a tick: following the jobs, viewing them, deciding on them."""
    loop = world.loop

    def scan() -> None:
        loop.jobs.step(world.ray.view().nodes, is_ray_up=True)
        decide(loop.snapshot(), loop.params.policy)

    times = timed(scan, runs=runs)
    snapshot = loop.snapshot()
    decided = timed(lambda: decide(snapshot, loop.params.policy), runs=runs)
    return Figure(
        name=name,
        what=f"following, snapshot and decision of a tick with {words} and a full home; median",
        value=times.median_ms,
        unit="ms",
        target=_TARGET_MS,
        details={**times.details(), "decide_ms": decided.details()},
    )


def _ticks(world: World, name: str, words: str, runs: int, without: Times) -> Figure:
    times = timed(lambda: _tick(world), runs=runs)
    return Figure(
        name=name,
        what=f"a whole tick with {words}, beyond one without any; difference of medians",
        value=times.median_ms - without.median_ms,
        unit="ms",
        details={"with": times.details(), "without": without.details()},
    )


def _tick(world: World) -> None:
    world.clock.advance(0.01)  # nothing becomes late while it is measured
    world.tick()


@contextmanager
def _world(*, is_mixed: bool) -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        world = World(Path(folder), params=quick_params(), step_s=STEP_S, host_count=HOSTS)
        world.run(2 * STEP_S)
        world.desk.pause("out", owner="bench")
        # Home is full of work that does not end.
        for number in range(HOSTS):
            world.desk.submit(_spec(4.0, 100, saves=is_mixed and number % 2 == 0))
        world.run(4 * STEP_S)
        yield world
        world.ledger.close()


def _fill(world: World, count: int, *, is_mixed: bool) -> None:
    rng = random.Random(7)
    for _ in range(count):
        spec = _spec(1.0, 50)
        if is_mixed:
            gpus, priority = float(rng.choice((1, 1, 1, 2, 2, 3, 4, 4))), rng.randrange(100)
            spec = _spec(gpus, priority, saves=rng.random() < 0.5).model_copy(
                update={
                    "job_class": rng.choice((JobClass.BATCH, JobClass.LONG, JobClass.BEST_EFFORT)),
                    "user": f"u{rng.randrange(_USERS)}",
                }
            )
        world.desk.submit(spec)
    world.tick()
    assert sum(_waits(job) for job in world.loop.jobs.book.live()) == count


def _waits(job: Job) -> bool:
    return job.state.value == "queued"


def _spec(gpus: float, priority: int, *, saves: bool = False) -> JobSpec:
    return JobSpec(
        entrypoint="python train.py",
        gpus=gpus,
        priority=priority,
        checkpoint=SavedWork(url="s3://bucket/run") if saves else None,
    )


if __name__ == "__main__":
    sys.exit(alone.tell(figures))
