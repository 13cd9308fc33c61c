"""What became of waits and suspensions, as the policy sees it."""

from __future__ import annotations

import pytest

from hybrid.core.outcomes import Outcomes

_SOON_S = 600.0


def test_a_start_after_more_than_the_target_is_late() -> None:
    outcomes = Outcomes(360.0)
    outcomes.begin(0.0, 360.0)
    outcomes.begin(0.0, 361.0)
    starts = outcomes.starts(0.0, _SOON_S)
    assert (starts.count, starts.late_count) == (2.0, 1.0)


def test_a_wait_ends_soon_if_home_has_a_place_in_time_wherever_the_job_was_meanwhile() -> None:
    outcomes = Outcomes(360.0)
    outcomes.submit("at-once", 0.0)
    outcomes.place("at-once", 10.0, is_home=True)
    assert outcomes.starts(10.0, _SOON_S).waited_count == 0
    outcomes.submit("moved", 10.0)
    outcomes.place("moved", 300.0, is_home=False)
    outcomes.place("moved", 500.0, is_home=True)
    starts = outcomes.starts(500.0, _SOON_S)
    assert (starts.waited_count, starts.soon_count) == (1.0, 1.0)


def test_a_job_without_a_place_at_home_for_long_did_not_get_one_soon() -> None:
    outcomes = Outcomes(360.0)
    for name in ("stays-out", "waits-on", "is-over"):
        outcomes.submit(name, 0.0)
    outcomes.place("stays-out", 300.0, is_home=False)
    outcomes.forget("is-over")
    assert outcomes.starts(_SOON_S, _SOON_S).waited_count == 0
    starts = outcomes.starts(_SOON_S + 1, _SOON_S)
    assert starts.waited_count == pytest.approx(1.8)
    assert starts.soon_count == 0
    outcomes.place("waits-on", 900.0, is_home=True)
    assert outcomes.starts(900.0, _SOON_S) == starts


def test_a_suspended_job_counts_where_it_goes_on() -> None:
    outcomes = Outcomes(360.0)
    for name, is_home in (("a", True), ("b", False), ("c", False)):
        outcomes.suspend(name)
        outcomes.place(name, 0.0, is_home=is_home)
        outcomes.place(name, 0.0, is_home=True)
    starts = outcomes.starts(0.0, _SOON_S)
    assert (starts.resumed_count, starts.resumed_out_count) == (3.0, 2.0)


@pytest.mark.parametrize("by_s", [3_600.0, -3_600.0])
def test_a_clock_that_is_set_makes_no_wait_longer_or_shorter(by_s: float) -> None:
    outcomes = Outcomes(360.0)
    outcomes.submit("waits", 10_000.0)
    outcomes.follow_clock(by_s)
    assert outcomes.starts(10_000.0 + _SOON_S + by_s, _SOON_S).waited_count == 0
    outcomes.place("waits", 10_000.0 + _SOON_S + by_s, is_home=True)
    starts = outcomes.starts(10_000.0 + _SOON_S + by_s, _SOON_S)
    assert (starts.waited_count, starts.soon_count) == (1.0, 1.0)
