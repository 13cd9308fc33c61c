"""Each baseline on traces so small that the bill can be worked out on paper.

Boots take exactly 270 s here: 30 s until the bill begins, then 240 s. A look is taken each 30 s,
the first at 30 s; a returned node is billed for 30 s more.
"""

from __future__ import annotations

import pytest

from hybrid.core.policy.plan import Drain, Launch
from hybrid.sim.baselines.base import Baseline
from hybrid.sim.baselines.hpa import Hpa
from hybrid.sim.baselines.keda import Keda
from hybrid.sim.baselines.ray_demand import RayDemand
from hybrid.sim.baselines.reactive import Reactive
from hybrid.sim.baselines.slurm import Slurm
from hybrid.sim.engine import Engine
from hybrid.sim.params import Boot, SimParams
from hybrid.sim.traces.trace import Trace, TraceJob

Step = tuple[float, str]
Job = tuple[float, float, int]


def run(policy: Baseline, gpus: int, *jobs: Job) -> Engine:
    """Run jobs of `(submit_s, duration_s, gpus)`, at one dollar for a GPU and hour."""
    rows = [
        TraceJob(job_id=f"j{number:02d}", submit_s=at_s, duration_s=takes_s, gpus=size)
        for number, (at_s, takes_s, size) in enumerate(jobs)
    ]
    params = SimParams(
        gpus=gpus, boot=Boot(sigma=0.0, fail_share=0.0), usd_per_gpu_hour=1.0, node_gpus=8
    )
    engine = Engine(Trace.of("by hand", rows), params, policy, log=[])
    engine.run()
    return engine


def steps(engine: Engine) -> list[Step]:
    """Return what was done when: `+2` for a node of two GPUs, `-rent-0000001` for its end."""
    found: list[Step] = []
    for at_s, action in engine.log or ():
        if isinstance(action, Launch):
            found.append((at_s, f"+{action.offer.gpu_count}"))
        elif isinstance(action, Drain):
            found.append((at_s, f"-{action.instance_id.removeprefix('rent-').lstrip('0')}"))
    return found


def starts(engine: Engine) -> list[float | None]:
    """Return when each job first ran."""
    return [engine.jobs[job.job_id].first_at_s for job in engine.trace.jobs]


def gpu_s(engine: Engine) -> float:
    """Return the billed GPU-seconds, by the money."""
    return engine.bill.usd * 3600


FULL = (0.0, 10_000.0, 8)
"""Fills a home of eight GPUs for long."""


# --- ray ------------------------------------------------------------------------------------


def test_ray_rents_at_the_next_look_and_returns_after_the_time_out() -> None:
    engine = run(RayDemand(idle_after_s=300.0), 8, FULL, (0.0, 600.0, 2))
    assert starts(engine) == [0.0, 300.0]
    # Idle since 900 s; returned at 1,200 s; billed from 60 s to 1,230 s.
    assert steps(engine) == [(30.0, "+2"), (1_200.0, "-1")]
    assert gpu_s(engine) == pytest.approx(2 * 1_170.0)


def test_ray_uses_an_idle_node_again_and_its_time_out_starts_anew() -> None:
    engine = run(RayDemand(idle_after_s=60.0), 8, FULL, (0.0, 600.0, 2), (950.0, 100.0, 2))
    assert starts(engine) == [0.0, 300.0, 950.0]
    assert steps(engine) == [(30.0, "+2"), (1_110.0, "-1")]
    assert gpu_s(engine) == pytest.approx(2 * (1_140.0 - 60.0))


def test_ray_lets_later_pieces_use_what_a_new_node_has_left() -> None:
    # The 3 take a node of four, whose fourth GPU is for the 1.
    engine = run(RayDemand(), 8, FULL, (0.0, 60.0, 3), (0.0, 60.0, 1))
    assert [what for _, what in steps(engine)] == ["+4", "-1"]


def test_ray_counts_on_nodes_that_boot_and_launches_nothing_twice() -> None:
    engine = run(RayDemand(), 8, FULL, (0.0, 60.0, 8), (40.0, 60.0, 8))
    assert [step for step in steps(engine) if "+" in step[1]] == [(30.0, "+8"), (60.0, "+8")]


def test_ray_rents_whole_nodes_and_the_rest_for_a_wide_job() -> None:
    engine = run(RayDemand(), 8, FULL, (0.0, 60.0, 18))
    assert [what for _, what in steps(engine)][:3] == ["+8", "+8", "+2"]
    assert starts(engine) == [0.0, 300.0]


# --- slurm ----------------------------------------------------------------------------------


def test_slurm_resumes_a_node_for_each_job_that_cannot_start() -> None:
    engine = run(Slurm(), 8, FULL, (0.0, 60.0, 3), (0.0, 60.0, 1))
    assert [what for _, what in steps(engine)][:2] == ["+8", "+1"]
    # Both run from 300 s to 360 s, and are suspended at the look after 960 s.
    assert [step for step in steps(engine) if "-" in step[1]] == [(960.0, "-1"), (960.0, "-2")]
    assert gpu_s(engine) == pytest.approx(9 * (990.0 - 60.0))


def test_slurm_resumes_no_more_than_its_rate_at_one_look() -> None:
    engine = run(Slurm(), 8, FULL, *[(0.0, 60.0, 1)] * 12)
    assert [at_s for at_s, what in steps(engine) if what == "+1"] == [30.0] * 10 + [60.0] * 2


# --- hpa ------------------------------------------------------------------------------------


def test_hpa_aims_at_its_target_and_goes_down_by_the_window() -> None:
    engine = run(Hpa(), 8, (0.0, 1_000.0, 8), (0.0, 600.0, 8))
    # 16 used of 8 at 0.9: ceil(17.8) = 18 GPUs, so ten rented, so two nodes. At 900 s one of two
    # nodes has no work, and 8 of 24 are used: 9 GPUs, one node; the last wish for two was at
    # 870 s. From 1,020 s nothing is used; the last wish for one was at 990 s.
    assert steps(engine) == [(30.0, "+8"), (30.0, "+8"), (1_200.0, "-2"), (1_320.0, "-1")]
    assert gpu_s(engine) == pytest.approx(8 * (1_230.0 - 60.0) + 8 * (1_350.0 - 60.0))


def test_hpa_does_nothing_within_its_tolerance() -> None:
    # 8 of 8 used at a target of 0.95: a ratio of 1.05.
    engine = run(Hpa(target=0.95), 8, (0.0, 1_000.0, 8), (990.0, 5.0, 1))
    assert steps(engine) == []


def test_hpa_at_most_doubles_or_adds_four() -> None:
    engine = run(Hpa(), 8, FULL, *[(0.0, 600.0, 8)] * 20)
    # 168 used of 8 at 0.9: 187 GPUs, of which 179 rented, so 23 nodes.
    ups = [at_s for at_s, what in steps(engine) if what == "+8"]
    assert ups == [30.0] * 4 + [60.0] * 4 + [90.0] * 8 + [120.0] * 7


# --- keda -----------------------------------------------------------------------------------


def test_keda_rents_by_the_length_of_the_queue_and_cools_down() -> None:
    engine = run(Keda(), 8, FULL, (0.0, 600.0, 8))
    # The last wish for one node was at 870 s.
    assert steps(engine) == [(30.0, "+8"), (1_200.0, "-1")]
    assert gpu_s(engine) == pytest.approx(8 * 1_170.0)


def test_keda_rounds_up_by_gpus_and_does_not_see_how_they_are_cut() -> None:
    # 5 + 5 GPUs are ceil(10 / 8) = 2 nodes; 3 + 5 are one.
    engine = run(Keda(), 8, FULL, (0.0, 600.0, 5), (0.0, 600.0, 5))
    assert [what for _, what in steps(engine)][:3] == ["+8", "+8", "-1"]
    engine = run(Keda(), 8, FULL, (0.0, 600.0, 3), (0.0, 600.0, 5))
    assert [what for _, what in steps(engine)] == ["+8", "-1"]


# --- reactive -------------------------------------------------------------------------------


def test_reactive_waits_for_two_looks_and_goes_down_one_by_one() -> None:
    engine = run(Reactive(), 8, FULL, (0.0, 600.0, 16))
    assert starts(engine) == [0.0, 330.0]
    # Idle since 930 s; one after 600 s, the other a cooldown later.
    assert steps(engine) == [(60.0, "+8"), (60.0, "+8"), (1_530.0, "-1"), (1_830.0, "-2")]
    assert gpu_s(engine) == pytest.approx(8 * (1_560.0 - 90.0) + 8 * (1_860.0 - 90.0))


def test_reactive_does_not_see_a_short_queue() -> None:
    engine = run(Reactive(), 8, (0.0, 1_000.0, 8), (0.0, 60.0, 8))
    assert steps(engine) == []
    assert starts(engine) == [0.0, 1_000.0]


# --- all of them ----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [RayDemand(), Slurm(), Hpa(), Keda(), Reactive()])
def test_home_is_used_first_and_nobody_waits_behind_a_job_that_does_not_fit(
    policy: Baseline,
) -> None:
    engine = run(policy, 8, (0.0, 500.0, 6), (1.0, 500.0, 4), (2.0, 100.0, 2))
    assert starts(engine)[0] == 0.0
    assert starts(engine)[2] == 2.0
