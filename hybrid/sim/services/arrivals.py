"""Requests that arrive tick by tick, drawn from the rates of a trace."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from hybrid.sim.services.params import ServiceSimParams
from hybrid.sim.traces.rates import RateTrace, RateWindow

_EXACT_BELOW = 30.0
"""Poisson numbers of a larger mean are drawn from the normal distribution, which is as good."""


def arrivals(trace: RateTrace, params: ServiceSimParams) -> list[int]:
    """Return how many requests arrive in each tick.

    A negative binomial number (Poisson with a Gamma mean): its variance over its mean is the
    square of the trace's variation of times between requests, which is right for windows that
    are long against those times. Nothing arrives in gaps between windows. Later windows change
    no earlier number but, in shape `line`, from half a window before them.
    """
    draw = Random(f"arrivals {params.seed}")
    return [_negative_binomial(draw, mean, d) for mean, d in _ticks(trace, params)]


def _ticks(trace: RateTrace, params: ServiceSimParams) -> Iterator[tuple[float, float]]:
    """Yield the mean number of requests in each tick and its dispersion."""
    windows, place = trace.windows, 0
    for tick in range(math.ceil(trace.end_s / params.tick_s - 1e-9)):
        at_s = (tick + 0.5) * params.tick_s
        while windows[place].start_s + windows[place].length_s <= at_s and place + 1 < len(windows):
            place += 1
        window = windows[place]
        if not window.start_s <= at_s < window.start_s + window.length_s:
            yield 0.0, 1.0
            continue
        rate = window.requests_per_s if params.shape == "steps" else _on_line(windows, place, at_s)
        squared = window.interarrival_cv**2
        dispersion = min(squared, params.most_dispersion) if squared > 0 else 1.0
        yield rate * params.scale * params.tick_s, dispersion


def _on_line(windows: tuple[RateWindow, ...], place: int, at_s: float) -> float:
    here = windows[place]
    side = place + (1 if at_s > _middle_s(here) else -1)
    if not 0 <= side < len(windows):
        return here.requests_per_s
    there = windows[side]
    if abs(_middle_s(there) - _middle_s(here)) > (here.length_s + there.length_s) / 2 + 1e-6:
        return here.requests_per_s  # a gap between them
    part = (at_s - _middle_s(here)) / (_middle_s(there) - _middle_s(here))
    return here.requests_per_s + part * (there.requests_per_s - here.requests_per_s)


def _middle_s(window: RateWindow) -> float:
    return window.start_s + window.length_s / 2


def _negative_binomial(draw: Random, mean: float, dispersion: float) -> int:
    if mean <= 0:
        return 0
    if dispersion > 1.0:
        mean = draw.gammavariate(mean / (dispersion - 1), dispersion - 1)
    return _poisson(draw, mean)


def _poisson(draw: Random, mean: float) -> int:
    if mean >= _EXACT_BELOW:
        return max(0, round(draw.gauss(mean, math.sqrt(mean))))
    count, product, limit = 0, draw.random(), math.exp(-mean)
    while product > limit:
        count += 1
        product *= draw.random()
    return count
