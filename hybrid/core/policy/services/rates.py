"""What is known about the rate: its level, how much it scatters, and where it goes.

Unknown is never zero: a window without a number, with one that is no number, or from too long
ago says nothing at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from hybrid.core.policy.services.params import ServiceParams
from hybrid.core.policy.services.view import ServiceView

_MEDIAN_OF_SQUARE = 0.455
"""Median of the square of a standard normal number: makes a median of squares a variance."""
_MOST = 1e12
"""No service gets, or keeps waiting, more requests than this: a larger number is a broken one."""
_FEWEST_DIFFERENCES = 20
"""Fewer differences than this say too little about the dispersion."""


def known(number: float | None) -> float | None:
    """Return a number that can be one, from 0 up; `None` for anything else."""
    if number is None or not 0 <= number <= _MOST:  # NaN is not either
        return None
    return number


def known_rates(view: ServiceView, params: ServiceParams) -> list[tuple[float, float, float]]:
    """Return (end, span, rate) of each window that says something, newest first.

    Empty when the newest is stale. A window that ends in the future is a wrong clock.
    """
    found = sorted(
        (
            (rate.end_at_s, rate.span_s, rps)
            for rate in view.rates
            if (rps := known(rate.rps)) is not None and rate.end_at_s <= view.now_s
        ),
        reverse=True,
    )
    return found if found and found[0][0] >= view.now_s - params.fresh_s else []


def level_rps(
    rates: Sequence[tuple[float, float, float]], dispersion: float, params: ServiceParams
) -> float:
    """Return the rate now: of the longest span, unless shorter ones show that it has changed.

    A long span has little noise; after a jump only a short one tells the truth.

    Args:
        rates: As of `known_rates`, at least one.
        dispersion: Variance of requests over their mean.
        params: Spans, and what counts as a change.
    """
    newest_s = rates[0][0]
    spans = sorted(params.spans_s, reverse=True)
    means = _means(rates, newest_s, spans)
    level = means[0]
    for span_s, mean in zip(spans[1:], means[1:], strict=True):
        sigma = math.sqrt(dispersion * max(level, 1.0) / span_s)
        is_rise = mean > level + params.change_sigmas * sigma
        is_fall = span_s >= params.fall_s and mean < level - params.change_sigmas * sigma
        if is_rise or is_fall:
            level = mean
    return level


def dispersion_of(
    view: ServiceView, rates: Sequence[tuple[float, float, float]], params: ServiceParams
) -> float:
    """Return the variance of requests over their mean, from windows that follow each other.

    The median of squared differences: a jump of the rate between two windows is no noise.
    """
    told = known(view.dispersion)
    if told is not None:
        return min(max(told, 1.0), params.most_dispersion)
    squares = sorted(
        (new[2] - old[2]) ** 2 / (new[2] + old[2]) * (new[1] + old[1]) / 2
        for new, old in pairwise(rates)
        if new[2] + old[2] > 0
    )
    if len(squares) < _FEWEST_DIFFERENCES:
        return params.assumed_dispersion
    measured = squares[len(squares) // 2] / _MEDIAN_OF_SQUARE
    return min(max(measured, 1.0), params.most_dispersion)


def growth(
    view: ServiceView, rates: Sequence[tuple[float, float, float]], params: ServiceParams
) -> float:
    """Return how many times the rate of now is expected when a replica rented now serves.

    Always in [1, `most_growth`]. Windows without traffic are ignored: a ratio to them has no
    meaning, and once made a forecast that cost ten times too much.
    """
    boot_s = view.boot_s if view.boot_s is not None else params.assumed_boot_s
    newest_s = rates[0][0]
    new = _mean_between(rates, newest_s - params.trend_s, newest_s)
    old = _mean_between(rates, newest_s - 2 * params.trend_s, newest_s - params.trend_s)
    ratio = 1.0
    if new is not None and old is not None:
        slope = (new - old) / params.trend_s
        ratio = 1.0 + slope * (boot_s + params.trend_s / 2) / new
    usual = known(view.usual_growth)
    return min(max(ratio, usual if usual is not None else 1.0, 1.0), params.most_growth)


def _means(
    rates: Sequence[tuple[float, float, float]], newest_s: float, spans: Sequence[float]
) -> list[float]:
    """Return the mean over each span, longest first; the newest window is in all of them."""
    means: list[float] = []
    total = length = 0.0
    place = 0
    for span_s in reversed(spans):
        while place < len(rates) and (place == 0 or rates[place][0] > newest_s - span_s + 1e-6):
            total += rates[place][2] * rates[place][1]
            length += rates[place][1]
            place += 1
        means.append(total / length)
    return means[::-1]


def _mean_between(
    rates: Sequence[tuple[float, float, float]], start_s: float, end_s: float
) -> float | None:
    """Return the mean of windows with traffic that end in (start, end]; `None` of under half."""
    total = length = 0.0
    for end, span_s, rps in rates:
        if start_s + 1e-6 < end <= end_s + 1e-6 and rps > 0:
            total += rps * span_s
            length += span_s
    return total / length if length >= (end_s - start_s) / 2 else None
