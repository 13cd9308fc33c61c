"""Tests of how long a failing thing is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.backoff import backoff_s
from tests.core.make import laws


@pytest.mark.parametrize(
    ("failure_count", "expected_s"),
    [
        pytest.param(1, 180.0, id="first"),
        pytest.param(2, 360.0, id="doubles"),
        pytest.param(4, 1_440.0, id="doubles-again"),
        pytest.param(5, 1_800.0, id="at-the-cap"),
        pytest.param(10_000, 1_800.0, id="stays-a-number"),
    ],
)
def test_the_delay_doubles_up_to_the_cap(failure_count: int, expected_s: float) -> None:
    assert backoff_s(failure_count) == expected_s


def test_half_of_the_delay_is_drawn() -> None:
    assert backoff_s(1, base_s=100, jitter=0.0) == 100
    assert backoff_s(1, base_s=100, jitter=0.5) == 75
    assert backoff_s(1, base_s=100, jitter=0.999) == pytest.approx(50, abs=0.1)


@pytest.mark.parametrize("failure_count", [0, -1])
def test_no_failure_has_no_delay(failure_count: int) -> None:
    with pytest.raises(ValueError, match=f"failure_count is {failure_count}"):
        backoff_s(failure_count)


@given(
    st.integers(1, 100_000),
    st.floats(0.001, 1e4),
    st.floats(1e4, 1e6),
    st.floats(0, 1, exclude_max=True),
)
@laws
def test_a_delay_is_within_its_bounds_and_never_shrinks_with_more_failures(
    failure_count: int, base_s: float, cap_s: float, jitter: float
) -> None:
    delay_s = backoff_s(failure_count, base_s=base_s, cap_s=cap_s, jitter=jitter)
    longer_s = backoff_s(failure_count + 1, base_s=base_s, cap_s=cap_s, jitter=jitter)

    assert base_s / 2 <= delay_s <= cap_s
    assert longer_s >= delay_s
