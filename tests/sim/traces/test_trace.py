"""Trace jobs, traces, and the windows and shares taken of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.sim.traces.trace import DAY_S, Skipped, Trace, TraceJob


def job(job_id: str = "a", submit_s: float = 0.0, **other: Any) -> TraceJob:
    given = {"submit_s": submit_s, "duration_s": 60.0, "gpus": 1, **other}
    return TraceJob(job_id=job_id, **given)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("submit_s", -1.0),
        ("submit_s", math.nan),
        ("submit_s", math.inf),
        ("duration_s", 0.0),
        ("duration_s", -5.0),
        ("duration_s", math.nan),
        ("duration_s", math.inf),
        ("gpus", 0),
        ("checkpoint_gb", -1.0),
        ("checkpoint_gb", math.nan),
    ],
)
def test_a_job_refuses_a_number_that_no_reader_may_let_through(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"job a: {field}"):
        job(**{field: value})


def test_a_trace_is_sorted_by_time_and_then_by_id() -> None:
    trace = Trace.of("t", [job("c", 5.0), job("b", 5.0), job("a", 9.0)])

    assert [each.job_id for each in trace.jobs] == ["b", "c", "a"]


def test_a_trace_refuses_jobs_out_of_order() -> None:
    with pytest.raises(ValueError, match="not sorted"):
        Trace("t", (job("a", 5.0), job("b", 1.0)))


def test_a_trace_refuses_an_id_that_is_there_twice() -> None:
    with pytest.raises(ValueError, match="there twice"):
        Trace.of("t", [job("a", 1.0), job("a", 2.0)])


def test_a_window_keeps_its_first_instant_and_not_its_last() -> None:
    trace = Trace.of(
        "t", [job(str(day), day * DAY_S) for day in range(4)], (Skipped("odd", 1, (7,)),)
    )

    window = trace.window(1, 3)

    assert [(each.job_id, each.submit_s) for each in window.jobs] == [("1", 0.0), ("2", DAY_S)]
    assert window.name == "t days 1-3"
    assert window.skipped == trace.skipped


@pytest.mark.parametrize(("first", "last"), [(2, 2), (3, 1), (-1, 2), (math.nan, 1)])
def test_a_window_that_is_none_is_refused(first: float, last: float) -> None:
    with pytest.raises(ValueError, match="no window"):
        Trace.of("t", []).window(first, last)


@given(
    share=st.floats(0.0, 1.0),
    more=st.floats(0.0, 1.0),
    seed=st.integers(),
    count=st.integers(0, 40),
)
def test_a_larger_share_of_the_same_seed_only_adds_checkpointable_jobs(
    share: float, more: float, seed: int, count: int
) -> None:
    trace = Trace.of("t", [job(f"{row:03}", row) for row in range(count)])
    small, large = sorted((share, more))

    few, many = trace.with_share(small, seed), trace.with_share(large, seed)

    assert few == trace.with_share(small, seed)
    pairs = zip(few.jobs, many.jobs, strict=True)
    assert all(one.is_checkpointable <= other.is_checkpointable for one, other in pairs)


def test_a_share_of_one_is_everyone_and_of_none_nobody() -> None:
    trace = Trace.of("t", [job(str(row), row) for row in range(50)])

    assert all(each.is_checkpointable for each in trace.with_share(1.0, 3).jobs)
    assert not any(each.is_checkpointable for each in trace.with_share(0.0, 3).jobs)


def test_scaling_divides_the_times_and_multiplies_the_lengths() -> None:
    trace = Trace.of("t", [job("a", 100.0, duration_s=30.0)])

    (scaled,) = trace.scaled(pace=2.0, length=3.0).jobs

    assert (scaled.submit_s, scaled.duration_s) == (50.0, 90.0)


def test_jobs_that_fit_nowhere_are_counted_with_their_places() -> None:
    trace = Trace.of("t", [job(str(row), row, gpus=row) for row in range(1, 10)])

    fitting = trace.fitting(2)

    assert [each.gpus for each in fitting.jobs] == [1, 2]
    assert fitting.skipped[0].count == 7
    assert fitting.skipped[0].first_rows == (3, 4, 5, 6, 7)
    assert trace.fitting(9) is trace


def test_work_and_end_of_a_trace() -> None:
    trace = Trace.of("t", [job("a", 0.0, duration_s=500.0, gpus=2), job("b", 100.0)])

    assert (trace.gpu_s, trace.end_s) == (1060.0, 500.0)
    assert Trace.of("none", []).end_s == 0.0
