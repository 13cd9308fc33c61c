"""Runs so small that their course and their bill can be worked out on paper."""

from __future__ import annotations

import pytest

from hybrid.core.models.work import Checkpoint
from hybrid.core.policy.plan import Action, Launch, Move
from hybrid.sim.engine import Engine
from hybrid.sim.params import Boot, SimParams
from hybrid.sim.policies import Reservoir
from hybrid.sim.results import SimResult, result_of
from hybrid.sim.traces.trace import Trace, TraceJob

EXACT = Boot(alloc_s=30, median_s=240, sigma=0, fail_share=0, expected_s=300)
PARAMS = SimParams(
    gpus=8, usd_per_gpu_hour=3.6, boot=EXACT, checkpoint=Checkpoint(save_s=60, load_s=90)
)


def job(name: str, at_s: float, run_s: float, gpus: int, *, saves: bool = False) -> TraceJob:
    return TraceJob(name, at_s, run_s, gpus, is_checkpointable=saves)


def run(*jobs: TraceJob) -> tuple[Engine, SimResult, list[tuple[float, Action]]]:
    log: list[tuple[float, Action]] = []
    engine = Engine(Trace.of("by hand", jobs), PARAMS, Reservoir.of("balanced"), log=log)
    engine.run()
    return engine, result_of(engine, wall_s=0.0), log


def test_work_that_fits_at_home_costs_nothing_and_waits_for_nothing() -> None:
    _, result, log = run(job("a", 0, 100, 4), job("b", 10, 100, 4))
    assert result.usd == 0
    assert result.wait_s.p99 == 0
    assert result.promises.delay_by_jobs == 1
    assert log == []


def test_one_rented_node_from_its_launch_to_its_bill() -> None:
    engine, result, log = run(job("long", 0, 50_000, 8), job("short", 0, 1_000, 1))
    # It waits for 30 s, home has no room: launched at the tick of 30 s. There is nobody to change
    # places with, so it starts when the node comes, at 30 + 30 + 240 s, and ends at 1,300 s.
    launches = [(at_s, action) for at_s, action in log if isinstance(action, Launch)]
    assert [at_s for at_s, _ in launches] == [30]
    assert engine.jobs["short"].first_at_s == 300
    assert engine.jobs["short"].ended_at_s == 1_300
    # Idle for 60 s at the tick of 1,380 s. Billed from 60 s, 30 s after the request, to 1,410 s.
    assert result.rented_gpu_h == pytest.approx(1_350 / 3_600)
    assert result.usd == pytest.approx(1.35)
    assert result.usd_by_reason == {"job_waits": pytest.approx(1.35)}
    assert result.idle_gpu_h == pytest.approx(350 / 3_600)
    assert engine.now_s == 50_000


def test_work_that_can_move_comes_home_and_pays_for_the_trip() -> None:
    engine, result, log = run(job("long", 0, 5_000, 8), job("mover", 0, 9_000, 1, saves=True))
    homes = [(at_s, action) for at_s, action in log if isinstance(action, Move)]
    # It starts on the rented node at 300 s. Home is free at 5,000 s, and the tick of 5,010 s sees
    # it: 4,710 s are done. It saves for 60 s, loads for 90 s, and has 4,290 s to go.
    assert [(at_s, action.purpose) for at_s, action in homes] == [(5_010, "home")]
    assert engine.jobs["mover"].ended_at_s == 5_010 + 60 + 90 + 4_290
    # The node is held until the save is done at 5,070 s, idle for 60 s at 5,130 s, and billed
    # from 60 s to 5,160 s.
    assert result.usd == pytest.approx(5.1)
    assert result.lock_in_gpu_h == pytest.approx((10 + 60) / 3_600)
    assert result.interruptions.brought_home == 1
    assert result.promises.delay_by_jobs == 1


def test_a_run_is_the_same_each_time() -> None:
    jobs = [
        job(f"j{n:02d}", 40.0 * n, 2_000.0 + 97 * n, 1 + n % 8, saves=n % 3 > 0) for n in range(40)
    ]
    first, second = run(*jobs), run(*jobs)
    assert first[2] == second[2]
    timings = {"decide_p50_s": 0, "decide_p99_s": 0}
    assert first[1].model_copy(update=timings) == second[1].model_copy(update=timings)
