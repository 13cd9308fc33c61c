"""How many replicas a promise takes, and whether a breach outlasts the boot of a node."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hybrid.core.slo.reading import Judgement, Load, Slo, SloState

_MOST_GROWTH = 2.0
_MOST_MORE = 3
"""One step doubles a service at most, or adds three: the next look decides on the rest."""


def _known(number: float | None) -> float | None:
    """Return a rate or a number of requests that can be one: not NaN, infinite or negative."""
    is_one = number is not None and math.isfinite(number) and number >= 0
    return number if is_one else None


def excess(judgement: Judgement, load: Load, slo: Slo) -> float | None:
    """Return how many requests are in the system beyond what the target allows.

    By Little's law a service that answers `rate` requests a second in `target` seconds each holds
    rate x target of them.

    Returns:
        0 or more; `None` when the rate or the number is not known.
    """
    rate_rps, in_system = _known(judgement.rate_rps), _known(load.in_system)
    if not rate_rps or in_system is None:
        return None
    return max(0.0, in_system - rate_rps * slo.target_ms / 1000)


def need_count(judgement: Judgement, load: Load, slo: Slo, *, now_s: float) -> int | None:
    """Return how many replicas a broken promise takes; `None` when nothing can be said.

    One more at least. What waits beyond the target is to be served within a window, and it goes on
    to grow as it did since the breach began; where it is not known, as many times more as the
    latency is over its target. At most twice as many as run, or three more.
    """
    running = load.running
    if judgement.state is not SloState.BROKEN or judgement.value_ms is None or not running:
        return None
    beyond = excess(judgement, load, slo)
    if beyond is not None and judgement.rate_rps:
        since_s = now_s if judgement.since_s is None else judgement.since_s
        lasted_s = max(slo.window_s / 2, now_s - since_s)
        grows_by = beyond / lasted_s
        times = 1 + (beyond / slo.window_s + grows_by) / judgement.rate_rps
    else:
        times = judgement.value_ms / max(slo.target_ms, 1e-9)
    most = max(running * _MOST_GROWTH, running + _MOST_MORE)
    return max(running + 1, math.ceil(min(running * times, most) - 1e-9))


@dataclass(frozen=True, slots=True)
class Ahead:
    """What nodes should be rented for before Ray's queue would cause it.

    Attributes:
        count: Replicas that are missing, those that Serve asks for already included.
        why: One sentence.
    """

    count: int = 0
    why: str = ""


def ahead(
    judgement: Judgement,
    load: Load,
    slo: Slo,
    *,
    before: float | None,
    before_s: float,
    boot_s: float,
    most_count: int,
    now_s: float,
) -> Ahead:
    """Return which replicas nodes are worth renting for now.

    Only for a broken promise that will still be broken when a node has booted: what is in the
    system beyond the target does not shrink, or so slowly that a boot is faster. When that is not
    known: the breach has lasted for as long as a boot takes, so it may well do so again.

    Args:
        judgement: Whether the promise holds.
        load: What the service has and does.
        slo: The promise.
        before: Requests in the system earlier; `None` when not known.
        before_s: How much earlier.
        boot_s: From launch to a replica that serves.
        most_count: Replicas that there may be.
        now_s: Now, by the judgement's clock.
    """
    need = need_count(judgement, load, slo, now_s=now_s)
    if need is None or judgement.since_s is None or load.running is None:
        return Ahead()
    missing = min(max(need, load.target or 0), most_count) - load.running
    if missing <= 0:
        return Ahead()
    beyond, before = excess(judgement, load, slo), _known(before)
    measured = f"p{slo.percentile:g} of {judgement.value_ms or 0:.0f} ms, {slo.target_ms:g} allowed"
    if beyond is None or before is None or load.in_system is None or before_s <= 0:
        lasted_s = now_s - judgement.since_s
        if lasted_s < boot_s:
            return Ahead()
        return Ahead(missing, f"{measured}, for {lasted_s:.0f} s: as long as a boot takes")
    shrinks_by = (before - load.in_system) / before_s
    if shrinks_by > 0 and beyond <= shrinks_by * boot_s:
        return Ahead()
    waits = f"{load.in_system:.0f} requests in the system"
    if shrinks_by <= 0:
        return Ahead(missing, f"{measured}, and {waits} do not become fewer")
    clear_s = beyond / shrinks_by
    return Ahead(missing, f"{measured}, and {waits} take {clear_s:.0f} s to clear")
