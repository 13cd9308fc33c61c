"""How long a decision and a whole tick take on a large cluster.

A program of its own (`python -m scripts.bench_parts.tick`), see `alone`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from hybrid.core.policy.decide import decide
from scripts.bench_parts import alone
from scripts.bench_parts.big import Size, big_world, tick
from scripts.bench_parts.figures import Figure, timed
from tests.world.world import World

_DECIDE_MS = 50.0
_TICK_MS = 150.0


def measure() -> list[Figure]:
    """Measure in a process of its own."""
    return alone.measure("tick")


def figures(size: Size, *, runs: int) -> Iterator[Figure]:
    """Yield the figures of one size: when the caps are reached, and while it rents."""
    for name, words, room in (
        ("", "all caps are reached", 0),
        ("_launching", "ten instances are launched", 10 * (2 * runs + 10)),
    ):
        with _world(size, room) as world:
            yield _decide(world, size, f"decide{name}_ms", words, runs, target=_DECIDE_MS)
            yield _tick(world, size, f"tick{name}_ms", words, runs)
            if not room:
                yield _view(world, size, runs)
    size = replace(size, gangs=max(1, size.shapes // 3))
    with _world(size, 0) as world:
        words = f"all caps are reached, and {size.gangs} gangs of eight bundles wait too"
        yield _decide(world, size, "decide_gangs_ms", words, runs, target=None)


@contextmanager
def _world(size: Size, room: int) -> Iterator[World]:
    with (
        tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder,
        big_world(Path(folder), size, room=room) as world,
    ):
        yield world


def _decide(
    world: World, size: Size, name: str, words: str, runs: int, *, target: float | None
) -> Figure:
    snapshot, params = world.loop.snapshot(), world.params.policy
    plan = decide(snapshot, params)
    times = timed(lambda: decide(snapshot, params), runs=2 * runs)
    return Figure(
        name=name,
        what=f"decide() with {_words(size)}, while {words}; median",
        value=times.median_ms,
        unit="ms",
        target=target,
        details={
            **times.details(),
            "actions": len(plan.actions),
            "findings": len(plan.findings),
            "size": asdict(size),
        },
    )


def _tick(world: World, size: Size, name: str, words: str, runs: int) -> Figure:
    commits = len(world.ledger.events(limit=1_000_000))
    times = timed(lambda: tick(world), runs=runs)
    written = len(world.ledger.events(limit=1_000_000)) - commits
    return Figure(
        name=name,
        what=(
            f"a whole tick with {_words(size)}, while {words}; median. Ray's answer comes over "
            f"gRPC, the ledger is SQLite on disk, providers answer at once"
        ),
        value=times.median_ms,
        unit="ms",
        target=_TICK_MS,
        details={**times.details(), "events_per_tick": round(written / (runs + 1), 1)},
    )


def _view(world: World, size: Size, runs: int) -> Figure:
    def look() -> None:
        world.desk.publish()
        world.desk.status().model_dump_json()

    times = timed(look, runs=runs)
    return Figure(
        name="view_ms",
        what=f"making the answer to `hybrid status` with {_words(size)}; median",
        value=times.median_ms,
        unit="ms",
        details=times.details(),
    )


def _words(size: Size) -> str:
    return f"{size.nodes:,} nodes, {size.tasks:,} waiting tasks in {size.shapes} shapes"


if __name__ == "__main__":
    sys.exit(alone.tell(lambda: figures(Size(), runs=15)))
