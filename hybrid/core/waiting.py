"""How long work has waited, judged from counts alone.

Ray tells how many requests of a shape wait, not since when. Counts over time give a bound: when
a count grows, the growth arrived now; when it shrinks, the oldest left first. Arrivals and
departures between two looks cancel out and are not seen, so the age is an upper bound of the
oldest request's true wait.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from hybrid.core.models import ClusterView, Demand, Model, Selector, Shape


class Arrival(Model):
    """Requests first seen at one moment and still waiting."""

    at_s: float
    count: int


class Backlog(Model):
    """What was waiting at the last look: arrivals by key, the oldest first."""

    arrivals: Mapping[str, tuple[Arrival, ...]] = {}


def demand_key(shape: Shape, selectors: tuple[Selector, ...]) -> str:
    """Return a stable key for a kind of request."""
    return json.dumps(
        [
            sorted(shape.items()),
            [[(r.key, r.is_negated, r.values) for r in selector] for selector in selectors],
        ],
        separators=(",", ":"),
    )


def look(backlog: Backlog, view: ClusterView, *, now_s: float) -> tuple[Backlog, ClusterView]:
    """Return the next backlog, and the view with `waiting_s` filled in.

    Args:
        backlog: From the last look; empty at the start, so ages begin at 0 then.
        view: What waits now.
        now_s: Of this look. A clock that went back counts as no time passed.
    """
    arrivals: dict[str, tuple[Arrival, ...]] = {}
    demands = []
    for demand in view.demands:
        key = demand_key(demand.shape, demand.selectors)
        arrivals[key] = _update(backlog.arrivals.get(key, ()), demand.count, now_s)
        demands.append(_aged(demand, arrivals[key], now_s))
    gangs = []
    for gang in view.gangs:
        arrivals[gang.gang_id] = _update(backlog.arrivals.get(gang.gang_id, ()), 1, now_s)
        waiting_s = max(0.0, now_s - arrivals[gang.gang_id][0].at_s)
        gangs.append(gang.model_copy(update={"waiting_s": waiting_s}))
    aged = view.model_copy(update={"demands": tuple(demands), "gangs": tuple(gangs)})
    return Backlog(arrivals=arrivals), aged


def _aged(demand: Demand, arrivals: tuple[Arrival, ...], now_s: float) -> Demand:
    return demand.model_copy(update={"waiting_s": max(0.0, now_s - arrivals[0].at_s)})


def _update(arrivals: tuple[Arrival, ...], count: int, now_s: float) -> tuple[Arrival, ...]:
    before = sum(arrival.count for arrival in arrivals)
    if count >= before:
        grown = count - before
        return (*arrivals, Arrival(at_s=now_s, count=grown)) if grown else arrivals
    leaving = before - count
    kept = []
    for arrival in arrivals:
        gone = min(leaving, arrival.count)
        leaving -= gone
        if arrival.count > gone:
            kept.append(arrival.model_copy(update={"count": arrival.count - gone}))
    return tuple(kept)
