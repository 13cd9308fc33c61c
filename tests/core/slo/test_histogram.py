"""Percentiles of cumulative histograms, and what they grew by."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.slo import Growth, percentile

INF = math.inf


@pytest.mark.parametrize(
    ("buckets", "percent", "value"),
    [
        pytest.param({10: 0, 20: 100, INF: 100}, 50, 15.0, id="half way through one bucket"),
        pytest.param({10: 100, INF: 100}, 50, 5.0, id="the first bucket begins at zero"),
        pytest.param({10: 50, 20: 95, INF: 100}, 95, 20.0, id="exactly at a bound"),
        pytest.param({10: 50, 20: 90, INF: 100}, 99, 20.0, id="beyond the last finite bound"),
        pytest.param({10: 0, INF: 0}, 95, None, id="nothing observed"),
        pytest.param({}, 95, None, id="no bucket"),
        pytest.param({10: 5, 20: 9}, 95, None, id="no infinite bucket"),
        pytest.param({INF: 7}, 95, None, id="only an infinite bucket"),
        pytest.param({10: 9, 20: 5, INF: 10}, 95, 20.0, id="counts that fall are mended"),
        pytest.param({10: math.nan, INF: 10}, 95, 10.0, id="a count that is no number"),
    ],
)
def test_percentile(buckets: dict[float, float], percent: float, value: float | None) -> None:
    assert percentile(buckets, percent) == value


@given(
    st.lists(st.floats(0.1, 9_000), min_size=1, max_size=50),
    st.floats(1, 99),
    st.floats(1, 99),
)
def test_a_percentile_lies_in_its_bucket_and_grows_with_its_rank(
    values: list[float], one: float, other: float
) -> None:
    bounds = [1.0, 10.0, 100.0, 1_000.0, 10_000.0, INF]
    buckets = {b: float(sum(v <= b for v in values)) for b in bounds}
    low, high = sorted((one, other))

    at_low, at_high = percentile(buckets, low), percentile(buckets, high)

    assert at_low is not None
    assert at_high is not None
    assert at_low <= at_high
    true = sorted(values)[max(0, math.ceil(len(values) * high / 100) - 1)]
    upper = min(b for b in bounds if b >= true)
    lower = max([0.0, *(b for b in bounds if b < true)])
    assert lower - 1e-9 <= at_high <= upper + 1e-9


def test_growth_is_the_difference_between_two_looks() -> None:
    growth: Growth[str] = Growth()
    growth.add("a", {10: 5, INF: 8}, is_new=False)
    growth.add("a", {10: 6, INF: 12})

    assert growth.take() == {10: 1, INF: 4}
    assert growth.take() == {}


def test_a_counter_that_was_reset_counts_as_it_is() -> None:
    growth: Growth[str] = Growth()
    growth.add("a", {10: 500, INF: 800}, is_new=False)
    growth.add("a", {10: 2, INF: 3})

    assert growth.take() == {10: 2, INF: 3}


def test_a_series_that_began_since_the_last_look_counts_whole() -> None:
    growth: Growth[str] = Growth()
    growth.add("a", {10: 2, INF: 3}, is_new=True)

    assert growth.take() == {10: 2, INF: 3}


def test_series_are_told_apart() -> None:
    growth: Growth[str] = Growth()
    for key in ("a", "b"):
        growth.add(key, {10: 1, INF: 1}, is_new=False)
    growth.add("a", {10: 2, INF: 2})
    growth.forget(["b"])
    growth.add("b", {10: 9, INF: 9}, is_new=False)

    assert growth.take() == {10: 1, INF: 1}
    assert set(growth.keys) == {"a", "b"}
