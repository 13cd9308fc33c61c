"""What earlier days say about the next minutes."""

from __future__ import annotations

import math

import pytest

from hybrid.core.policy.services import usual_growth
from hybrid.core.policy.services.holding import held

DAY = [10.0] * 12 + [30.0] * 12
"""Hours of one day: at noon the rate triples."""


def growth(history: list[float | None], days: int = 1) -> float | None:
    return usual_growth(history, slot_s=3_600.0, ahead_s=3_600.0, days=days)


def test_the_rise_of_earlier_days_is_expected_again() -> None:
    # it is eleven o'clock on the third day, and an hour later it is noon
    assert growth([*DAY, *DAY, *DAY[:11]], days=2) == 3.0
    assert growth([*DAY, *DAY, *DAY[:12]], days=2) == 1.0


def test_no_history_says_nothing() -> None:
    assert growth([]) is None
    assert growth(list(DAY[:12])) is None
    assert growth([*DAY, *DAY[:11]], days=2) is None


@pytest.mark.parametrize("unknown", [None, math.nan, -1.0])
def test_a_slot_that_is_not_known_is_no_day_of_history(unknown: float | None) -> None:
    history: list[float | None] = [*DAY, *DAY[:11]]
    history[11] = unknown

    assert growth(history) is None


def test_days_without_traffic_say_nothing() -> None:
    assert growth([0.0] * 48) is None


def test_the_highest_of_a_span_is_found_in_few_entries() -> None:
    entries: tuple[tuple[float, int], ...] = ()
    counts = [5, 3, 4, 1, 2, 2, 0, 6, 1, 0, 0, 0]
    for place, count in enumerate(counts):
        entries = held(entries, float(place), count, 4.0)

        assert entries[0][1] == max(counts[max(0, place - 3) : place + 1])
        assert len(entries) <= 4
