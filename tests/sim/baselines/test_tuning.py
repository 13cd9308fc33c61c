"""The best point of a baseline's grid is the cheapest that keeps the promise."""

from __future__ import annotations

import pytest

from hybrid.sim.baselines.tuning import GRIDS, KINDS, best_of, best_tuned, keeps_promise
from hybrid.sim.params import SimParams
from hybrid.sim.results import SimResult
from hybrid.sim.run import simulate
from tests.sim.watched import random_trace


def _result(usd: float, in_time: float) -> SimResult:
    made = simulate(random_trace(1, count=1, most_gpus=1), SimParams(gpus=8), KINDS["ray"]())
    promises = made.promises.model_copy(update={"start_by_jobs": in_time})
    return made.model_copy(update={"usd": usd, "promises": promises})


def test_the_cheapest_that_keeps_the_promise_wins() -> None:
    runs = [
        ({"target": 1.0}, _result(10.0, 0.9)),
        ({"target": 0.9}, _result(20.0, 0.995)),
        ({"target": 0.8}, _result(30.0, 1.0)),
    ]
    best = best_of("hpa", runs)
    assert best.point == {"target": 0.9}
    assert best.is_promise_kept
    assert best.tried == 3


def test_where_none_keeps_it_the_nearest_is_shown_and_said_to_break_it() -> None:
    best = best_of("hpa", [({"target": 1.0}, _result(1.0, 0.5)), ({}, _result(9.0, 0.99))])
    assert best.point == {}
    assert not best.is_promise_kept


@pytest.mark.parametrize("kind", KINDS)
def test_each_grid_has_the_defaults_and_points_that_differ(kind: str) -> None:
    names = [KINDS[kind](**point).name for point in GRIDS[kind]]
    assert KINDS[kind]().name in names
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_no_point_of_any_grid_is_cheaper_and_keeps_the_promise() -> None:
    trace, params = random_trace(3, count=40, most_gpus=8), SimParams(gpus=12)
    told: list[str] = []
    best = best_tuned(trace, params, ("ray", "slurm"), on_run=told.append)
    assert len(told) == len(GRIDS["ray"]) + len(GRIDS["slurm"])
    for kind in ("ray", "slurm"):
        for point in GRIDS[kind]:
            result = simulate(trace, params, KINDS[kind](**point))
            assert result.usd >= best.result.usd or not keeps_promise(result)
