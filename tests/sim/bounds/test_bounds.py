"""The bounds on instances that can be worked out by hand, and the plan behind the upper one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.sim.bounds import feasible, migratable, rigid
from hybrid.sim.bounds.report import allowing_missed, bounds, captured_ratio
from hybrid.sim.bounds.work import Work, done_by, edges
from hybrid.sim.traces.trace import Trace, TraceJob

MINUTE_S = 60.0


def work_of(*jobs: tuple[float, float, int]) -> Work:
    """Return jobs given as (submit, duration, GPUs), in minutes."""
    submit, duration, gpus = np.array(jobs, dtype=np.float64).reshape(-1, 3).T
    return Work(submit * MINUTE_S, duration * MINUTE_S, gpus)


numbers = st.floats(0.0, 1e4)
jobs_of = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 60), st.integers(1, 4)), min_size=1, max_size=20
)


@given(
    jobs=st.lists(st.tuples(numbers, numbers, st.integers(1, 8)), min_size=1, max_size=12),
    at_s=st.lists(numbers, min_size=1, max_size=12),
)
def test_done_by_is_the_sum_of_what_each_job_has_done(
    jobs: list[tuple[float, float, int]], at_s: list[float]
) -> None:
    start, length, rate = np.array(jobs, dtype=np.float64).T
    times = np.array(at_s)
    expected = (rate * np.clip(times[:, None] - start, 0.0, length)).sum(axis=1)

    assert done_by(times, start, length, rate) == pytest.approx(expected, abs=1e-6, rel=1e-9)


@pytest.mark.parametrize(("end_s", "last_s"), [(0.0, 60.0), (60.0, 120.0), (61.0, 180.0)])
def test_the_edges_reach_beyond_the_end(end_s: float, last_s: float) -> None:
    assert edges(end_s, 60.0)[-1] == last_s


def test_what_home_cannot_do_in_time_is_rented() -> None:
    # Three hours at once, of which home can do one, and 20 minutes more before they are too late.
    work = work_of((0, 60, 1), (0, 60, 1), (0, 60, 1))

    rented = migratable.least_rented_gpu_s(work, 1, max_wait_s=20 * MINUTE_S)

    assert rented == pytest.approx((180 - 80) * MINUTE_S)


def test_a_late_share_lets_home_do_more_of_it() -> None:
    work = work_of((0, 60, 1), (0, 60, 1), (0, 60, 1))

    rented = migratable.least_rented_gpu_s(work, 1, max_wait_s=20 * MINUTE_S, late_share=0.5)

    assert rented == pytest.approx((180 - 110) * MINUTE_S)


def test_moving_is_cheaper_than_staying() -> None:
    # The long job cannot stay at home without taking the GPU of both short ones.
    work = work_of((0, 100, 1), (10, 20, 1), (60, 20, 1))

    staying = rigid.least_rented_gpu_s(work, 1, max_wait_s=0.0, step_s=MINUTE_S)
    moving = migratable.least_rented_gpu_s(work, 1, max_wait_s=0.0)

    assert staying == pytest.approx(40 * MINUTE_S, rel=1e-3)
    assert moving == pytest.approx(40 * MINUTE_S)


@pytest.mark.parametrize("gpus", [0, 10])
def test_without_home_all_is_rented_and_with_enough_of_it_nothing(gpus: int) -> None:
    work = work_of((0, 100, 2), (10, 20, 4), (15, 500, 4))
    expected = 0.0 if gpus else work.total_gpu_s

    assert migratable.least_rented_gpu_s(work, gpus, max_wait_s=300.0) == pytest.approx(expected)
    assert rigid.least_rented_gpu_s(work, gpus, max_wait_s=300.0) == pytest.approx(expected)
    assert feasible.cheapest_plan(work, gpus, max_wait_s=300.0).rented_gpu_s == expected


def test_no_jobs_cost_nothing() -> None:
    view = bounds(Trace.of("none", []), 8, max_wait_s=60.0, late_share=0.0, usd_per_gpu_hour=1.0)

    assert [bound.usd for bound in view.bounds] == [0.0] * 4
    assert [bound.work_ratio for bound in view.bounds] == [0.0] * 4


@settings(max_examples=40, deadline=None)
@given(jobs=jobs_of, gpus=st.integers(1, 8), wait=st.integers(0, 10))
def test_the_plan_can_be_carried_out(
    jobs: list[tuple[int, int, int]], gpus: int, wait: int
) -> None:
    work = work_of(*jobs)

    plan = feasible.cheapest_plan(work, gpus, max_wait_s=wait * MINUTE_S)

    home = ~np.isnan(plan.start_s)
    waited = plan.start_s[home] - work.submit_s[home]
    assert ((waited >= 0) & (waited <= wait * MINUTE_S + 1e-6)).all()
    begins, ends = plan.start_s[home], plan.start_s[home] + work.duration_s[home]
    for instant in begins:
        running = (begins <= instant) & (instant < ends - 1e-6)
        assert work.gpus[home][running].sum() <= gpus
    assert plan.rented_gpu_s == pytest.approx(work.gpu_s[~home].sum())


@settings(max_examples=40, deadline=None)
@given(jobs=jobs_of, gpus=st.integers(1, 8), wait=st.integers(0, 10))
def test_the_bounds_are_in_order(jobs: list[tuple[int, int, int]], gpus: int, wait: int) -> None:
    trace = Trace.of(
        "t",
        [
            TraceJob(str(row), submit * MINUTE_S, duration * MINUTE_S, count)
            for row, (submit, duration, count) in enumerate(jobs)
        ],
    )

    view = bounds(trace, gpus, max_wait_s=wait * MINUTE_S, late_share=0.1, usd_per_gpu_hour=3_600.0)

    usd = {bound.name: bound.usd for bound in view.bounds}
    slack = 1e-6 * max(1.0, usd["UB"])
    assert usd["LB-M(phi)"] <= usd["LB-M"] + slack
    assert usd["LB-M"] <= usd["LB-N"] + slack
    assert usd["LB-N"] <= usd["UB"] + slack
    assert [bound.is_lower for bound in view.bounds] == [True, True, True, False]


def test_work_that_may_miss_its_promise_is_taken_off_a_bound() -> None:
    assert allowing_missed(100.0, 1_000.0, 0.05) == 50.0
    assert allowing_missed(100.0, 1_000.0, 0.5) == 0.0


def test_captured_is_one_at_the_bound_and_none_where_nothing_could_be_saved() -> None:
    assert captured_ratio(60.0, 300.0, 60.0) == 1.0
    assert captured_ratio(300.0, 300.0, 60.0) == 0.0
    assert captured_ratio(50.0, 300.0, 60.0) == pytest.approx(250 / 240)
    assert captured_ratio(0.0, 0.0, 0.0) is None
