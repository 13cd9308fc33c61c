"""The usual course of a day's money."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.cost import DAY_S, HOUR_S, Payment
from hybrid.core.pacing import DAYS, share_by, usual_course

TODAY_S = 20_000 * DAY_S
NOON_S = TODAY_S + 12 * HOUR_S


def paid(age_days: int, from_hour: float, to_hour: float, usd: float) -> Payment:
    start_s = TODAY_S - age_days * DAY_S
    return Payment(start_s + from_hour * HOUR_S, start_s + to_hour * HOUR_S, usd)


def test_the_course_is_that_of_earlier_days() -> None:
    mornings = [paid(age, 8, 10, 50.0) for age in (1, 2, 3)]
    course = usual_course(mornings, now_s=NOON_S)
    assert course is not None
    assert course[7] == 0.0
    assert course[8] == pytest.approx(0.5)
    assert course[9] == course[23] == pytest.approx(1.0)
    assert share_by(course, TODAY_S + 8.5 * HOUR_S) == pytest.approx(0.25)
    assert share_by(course, NOON_S) == pytest.approx(1.0)


def test_one_dear_day_is_no_habit_and_recent_days_count_more() -> None:
    days = [paid(1, 0, 1, 10.0), paid(2, 0, 1, 10.0), paid(8, 20, 21, 10_000.0)]
    course = usual_course(days, now_s=NOON_S)
    assert course is not None
    # Half after a week: 1 and nearly 1 against a half.
    assert course[0] == pytest.approx((1 + 0.5 ** (1 / 7)) / (1 + 0.5 ** (1 / 7) + 0.5))


def test_two_days_are_no_habit_and_today_tells_nothing() -> None:
    two = [paid(1, 0, 1, 10.0), paid(2, 0, 1, 10.0), paid(0, 0, 1, 10.0)]
    assert usual_course(two, now_s=NOON_S) is None
    assert usual_course([*two, paid(DAYS + 1, 0, 1, 10.0)], now_s=NOON_S) is None
    assert usual_course([*two, paid(DAYS, 0, 1, 10.0)], now_s=NOON_S) is not None


def test_what_ran_over_midnight_is_split() -> None:
    over = [paid(age, 12, 36, 24.0) for age in (1, 2, 3, 4)]
    course = usual_course(over, now_s=NOON_S)
    assert course is not None
    assert course[11] < 0.5 < course[18]


payments = st.lists(
    st.builds(
        lambda from_s, length_s, usd: Payment(TODAY_S + from_s, TODAY_S + from_s + length_s, usd),
        st.floats(-20 * DAY_S, DAY_S),
        st.floats(0, 5 * DAY_S),
        st.floats(0, 1e6),
    ),
    max_size=12,
)


@given(payments, st.floats(0, DAY_S - 1))
def test_shares_ascend_to_one(made: list[Payment], since_s: float) -> None:
    course = usual_course(made, now_s=TODAY_S + since_s)
    if course is None:
        return
    assert len(course) == 24
    assert list(course) == sorted(course)
    assert course[-1] == pytest.approx(1.0)
    assert 0 <= share_by(course, TODAY_S + since_s) <= 1
