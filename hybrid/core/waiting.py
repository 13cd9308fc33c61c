"""How long work has waited, judged from counts alone.

Ray tells how many requests of a shape wait, not since when. Counts over time give a bound: when
a count grows, the growth arrived now; when it shrinks, the oldest left first. Arrivals and
departures between two looks cancel out and are not seen, so the age is an upper bound of the
oldest request's true wait, less the time of one look. Work that Ray serves out of turn is the
exception: when a younger request leaves first, the older one looks younger than it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from hybrid.core.models import ClusterView, Model, Selector, Shape


class Arrival(Model):
    """Requests first seen at one moment and still waiting."""

    at_s: float
    count: int


class Backlog(Model):
    """What was waiting at the last look.

    Attributes:
        arrivals: By key, the oldest first.
        looked_at_s: When that look was; `None` before the first.
    """

    arrivals: Mapping[str, tuple[Arrival, ...]] = {}
    looked_at_s: float | None = None


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
    before = _without_jump(backlog, now_s)
    counts: dict[str, int] = {}
    keys = [demand_key(demand.shape, demand.selectors) for demand in view.demands]
    for key, demand in zip(keys, view.demands, strict=True):
        counts[key] = counts.get(key, 0) + demand.count
    counts |= {gang.gang_id: 1 for gang in view.gangs}
    arrivals = {key: _update(before.get(key, ()), count, now_s) for key, count in counts.items()}
    # Never below 0: shifted instants carry rounding errors.
    age_s = {key: max(0.0, now_s - waiting[0].at_s) for key, waiting in arrivals.items()}
    demands = (
        demand.model_copy(update={"waiting_s": age_s[key]})
        for key, demand in zip(keys, view.demands, strict=True)
    )
    gangs = (g.model_copy(update={"waiting_s": age_s[g.gang_id]}) for g in view.gangs)
    aged = view.model_copy(update={"demands": tuple(demands), "gangs": tuple(gangs)})
    return Backlog(arrivals=arrivals, looked_at_s=now_s), aged


def _without_jump(backlog: Backlog, now_s: float) -> Mapping[str, tuple[Arrival, ...]]:
    """Return the arrivals, moved along when the clock went back, so that their ages stay."""
    if backlog.looked_at_s is None or now_s >= backlog.looked_at_s:
        return backlog.arrivals
    jump_s = now_s - backlog.looked_at_s
    return {
        key: tuple(a.model_copy(update={"at_s": a.at_s + jump_s}) for a in waiting)
        for key, waiting in backlog.arrivals.items()
    }


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
