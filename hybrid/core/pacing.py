"""How the money of a usual day is spread over its hours, to see when today's runs ahead.

A daily cap alone is spent by whoever comes first in the morning. Held against the usual course of
a day it says early that today will not last, while there is still something to save.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta

from hybrid.core.cost import DAY_S, HOUR_S, Payment, day_start_s

DAYS = 14
"""Earlier days that are looked at."""
_HALF_LIFE_DAYS = 7.0
_LEAST_DAYS = 3
_HOURS = round(timedelta(days=1) / timedelta(hours=1))


def usual_course(payments: Iterable[Payment], *, now_s: float) -> tuple[float, ...] | None:
    """Return which share of a day's money is usually spent by the end of each of its 24 hours.

    Args:
        payments: At least those of the last `DAYS` days; what is of today is left out.
        now_s: Now.

    Returns:
        24 shares, shape (24,), ascending to 1. Recent days count more: half after a week. `None`
        when fewer than three of those days had any cost: that is no habit.
    """
    today_s = day_start_s(now_s)
    by_day = [[0.0] * _HOURS for _ in range(DAYS)]
    for paid in payments:
        _spread(paid, by_day, today_s)
    by_hour = [0.0] * _HOURS
    seen = 0
    for age, hours in enumerate(by_day):
        total = math.fsum(hours)
        if total <= 0:
            continue
        seen += 1
        # Each day's shares, not its dollars: one dear day is no habit.
        weight = 0.5 ** (age / _HALF_LIFE_DAYS) / total
        by_hour = [sum_ + weight * usd for sum_, usd in zip(by_hour, hours, strict=True)]
    if seen < _LEAST_DAYS:
        return None
    whole, sofar, course = math.fsum(by_hour), 0.0, []
    for part in by_hour:
        sofar += part
        course.append(min(1.0, sofar / whole))
    return tuple(course)


def share_by(course: tuple[float, ...], now_s: float) -> float:
    """Return the share that is usually spent by this time of the day, between hours in a line."""
    hours = (now_s - day_start_s(now_s)) / HOUR_S
    hour = min(int(hours), len(course) - 1)
    before = course[hour - 1] if hour else 0.0
    return before + (course[hour] - before) * (hours - hour)


def _spread(paid: Payment, by_day: list[list[float]], today_s: float) -> None:
    from_s, to_s = max(paid.from_s, today_s - len(by_day) * DAY_S), min(paid.to_s, today_s)
    if to_s <= from_s or paid.usd <= 0:
        return
    usd_per_s = paid.usd / (paid.to_s - paid.from_s)
    at_s = from_s
    while at_s < to_s:
        until_s = min(to_s, (at_s // HOUR_S + 1) * HOUR_S)
        age = int((today_s - at_s - 1e-6) // DAY_S)
        hour = int((at_s - day_start_s(at_s)) // HOUR_S)
        by_day[min(age, len(by_day) - 1)][hour] += usd_per_s * (until_s - at_s)
        at_s = until_s
