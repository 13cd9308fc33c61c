"""The grid of each baseline, and its best point on a trace.

A default that nobody tuned is an easy opponent, so each baseline is run at every point of a
small grid, and the cheapest point that keeps the promise is the one that is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hybrid.sim.baselines.base import Baseline
from hybrid.sim.baselines.hpa import Hpa
from hybrid.sim.baselines.keda import Keda
from hybrid.sim.baselines.ray_demand import RayDemand
from hybrid.sim.baselines.reactive import Reactive
from hybrid.sim.baselines.slurm import Slurm
from hybrid.sim.params import SimParams
from hybrid.sim.results import SimResult
from hybrid.sim.run import simulate
from hybrid.sim.traces.trace import Trace

START_PROMISE = 0.995
"""Share of the jobs that must start within their longest wait."""

KINDS: Mapping[str, type[Baseline]] = {
    "ray": RayDemand,
    "hpa": Hpa,
    "keda": Keda,
    "slurm": Slurm,
    "reactive": Reactive,
}

Point = Mapping[str, float]
"""Arguments of a baseline."""


def _grid(**values: Sequence[float]) -> tuple[Point, ...]:
    points: list[dict[str, float]] = [{}]
    for name, options in values.items():
        points = [{**point, name: option} for point in points for option in options]
    return tuple(points)


GRIDS: Mapping[str, tuple[Point, ...]] = {
    "ray": (
        *_grid(idle_after_s=(30.0, 60.0, 300.0)),
        *_grid(idle_after_s=(60.0, 300.0), is_packed=(True,)),
    ),
    "hpa": _grid(target=(0.8, 0.9, 1.0), stabilise_s=(60.0, 300.0)),
    "keda": _grid(gpus_per_node=(8.0, 16.0), cooldown_s=(60.0, 300.0)),
    "slurm": _grid(suspend_after_s=(60.0, 300.0, 600.0)),
    "reactive": (
        *_grid(above_gpus=(0.0, 8.0), cooldown_s=(60.0, 300.0)),
        *_grid(above_gpus=(0.0,), step_nodes=(8,), cooldown_s=(60.0, 300.0)),
    ),
}
"""What is tried for each kind."""


@dataclass(frozen=True)
class Tuned:
    """The best point of one baseline's grid.

    Attributes:
        point: Its arguments.
        result: What it came to.
        is_promise_kept: Whether it, and so at least one point, keeps the promise.
        tried: Points of the grid.
    """

    kind: str
    point: Point
    result: SimResult
    is_promise_kept: bool
    tried: int


def best_tuned(
    trace: Trace,
    params: SimParams,
    kinds: Iterable[str] = KINDS,
    *,
    on_run: Callable[[str], None] | None = None,
) -> Tuned:
    """Return the cheapest point of all grids that keeps the promise on a trace.

    Args:
        trace: The jobs.
        params: The simulated site and cloud.
        kinds: Which baselines, of `KINDS`.
        on_run: Told which run begins.

    Returns:
        That point; where none keeps the promise, the one that comes nearest to it.
    """
    found = []
    for kind in kinds:
        runs = []
        for point in GRIDS[kind]:
            policy = KINDS[kind](**point)
            if on_run:
                on_run(policy.name)
            runs.append((point, simulate(trace, params, policy)))
        found.append(best_of(kind, runs))
    return min(found, key=lambda tuned: _rank(tuned.result))


def best_of(kind: str, runs: Sequence[tuple[Point, SimResult]]) -> Tuned:
    """Return the best of the runs of one baseline's grid."""
    point, result = min(runs, key=lambda run: _rank(run[1]))
    return Tuned(kind, point, result, keeps_promise(result), len(runs))


def keeps_promise(result: SimResult) -> bool:
    """Return whether enough jobs started in time."""
    return result.promises.start_by_jobs >= START_PROMISE


def _rank(result: SimResult) -> tuple[float, float]:
    # Those that break the promise come last, the nearest to it first.
    missing = max(0.0, START_PROMISE - result.promises.start_by_jobs)
    return missing, result.usd
