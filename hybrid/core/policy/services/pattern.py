"""What a service usually does at this time of day, from the days before."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.core.policy.services.rates import known

DAY_S = 86_400.0


def usual_growth(
    history: Sequence[float | None], *, slot_s: float, ahead_s: float, days: int
) -> float | None:
    """Return how the rate changed on earlier days from this time of day to a little later.

    Args:
        history: Mean rate in slots that follow each other, requests per second; the last has
            just ended. `None` where it is not known. The future cannot be in it.
        slot_s: Length of a slot.
        ahead_s: How much later.
        days: So many earlier days must be known.

    Returns:
        The ratio of sums over the earlier days; `None` when fewer than `days` of them are
        known, or nothing came on them at this time.
    """
    per_day = round(DAY_S / slot_s)
    ahead = max(1, round(ahead_s / slot_s))
    now, later = [], []
    for end in range(len(history) - per_day, 0, -per_day):
        first = known(history[end - 1])
        second = known(history[end - 1 + ahead]) if ahead < per_day else None
        if first is not None and second is not None:
            now.append(first)
            later.append(second)
    if len(now) < days or sum(now) <= 0:
        return None
    return sum(later) / sum(now)
