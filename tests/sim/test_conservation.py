"""Whatever a policy does, the simulated world adds up."""

from __future__ import annotations

import pytest

from hybrid.sim.baselines.tuning import KINDS
from hybrid.sim.named import NAMES, PROFILE_NAMES, Named
from hybrid.sim.params import Boot, SimParams
from hybrid.sim.results import result_of
from hybrid.sim.run import simulate
from hybrid.sim.traces.trace import Trace, TraceJob
from tests.sim.watched import Watched, random_trace

pytestmark = pytest.mark.slow


def _watched(name: str, seed: int, *, boot: Boot | None = None) -> Watched:
    params = SimParams(gpus=20, seed=seed, max_rented_gpus=64, boot=boot or Boot())
    # A threshold of 8 GPUs would leave a narrow job waiting for ever; the default grid has 0 too.
    changes = {"above_gpus": 0.0} if name == "reactive" else {}
    policy = Named(name, changes).make(late_share=params.late_share)
    engine = Watched(random_trace(seed), params, policy)
    engine.run()
    return engine


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_job_ends_and_no_gpu_is_used_twice_at_any_moment(name: str, seed: int) -> None:
    engine = _watched(name, seed)
    assert engine.looks > len(engine.trace.jobs)
    assert engine.done_count == len(engine.trace.jobs)
    assert not engine.queue
    assert not engine.rented
    assert engine.board.home.free_gpus == engine.params.gpus
    for job in engine.jobs.values():
        assert job.ended_at_s is not None
        assert job.ended_at_s - job.trace.submit_s >= job.trace.duration_s - 1e-6


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fail_share", [0.0, 0.3])
def test_the_bill_is_the_sum_of_the_nodes_that_were_returned(name: str, fail_share: float) -> None:
    engine = _watched(name, 3, boot=Boot(fail_share=fail_share))
    assert engine.bill.usd == pytest.approx(engine.billed_usd())
    result = result_of(engine, wall_s=0.0)
    assert result.usd == pytest.approx(sum(result.usd_by_reason.values()))
    assert result.usd > 0
    assert result.idle_gpu_h >= 0
    assert len(engine.rents) + result.failed == result.launches


@pytest.mark.parametrize("name", KINDS)
def test_a_baseline_stops_no_job_and_does_the_work_of_the_trace_exactly(name: str) -> None:
    engine = _watched(name, 4)
    done_gpu_s = engine.home_gpu_s + engine.cloud_gpu_s
    assert done_gpu_s == pytest.approx(engine.trace.gpu_s)
    assert all(job.interruption_count == 0 for job in engine.jobs.values())


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_interruptions_cost_time_and_never_save_it(name: str) -> None:
    engine = _watched(name, 4)
    assert engine.home_gpu_s + engine.cloud_gpu_s >= engine.trace.gpu_s - 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_give_equal_results_and_another_seed_another_one(name: str) -> None:
    def run(seed: int) -> dict[str, object]:
        params = SimParams(gpus=16, seed=seed)
        changes = {"above_gpus": 0.0} if name == "reactive" else {}
        result = simulate(random_trace(5), params, Named(name, changes).make(late_share=0.02))
        timing = {"wall_s", "decide_p50_s", "decide_p99_s"}
        return result.model_dump(exclude=timing)

    assert run(7) == run(7)
    assert run(7)["usd"] != run(8)["usd"]


def test_a_policy_that_lets_work_wait_for_ever_is_said_so() -> None:
    narrow = Trace.of("narrow", [TraceJob(job_id="a", submit_s=0.0, duration_s=60.0, gpus=1)])
    policy = Named("reactive").make(late_share=0.0)
    with pytest.raises(ValueError, match="leaves 1 jobs waiting and 0 nodes rented for ever"):
        simulate(narrow, SimParams(gpus=0), policy)
