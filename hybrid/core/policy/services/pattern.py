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
        days: So many earlier days must agree.

    Returns:
        The lowest ratio of the last `days` of them: a rise that did not come each day is no
        pattern. `None` when fewer are known; a day without traffic now tells nothing.
    """
    per_day = round(DAY_S / slot_s)
    ahead = max(1, round(ahead_s / slot_s))
    ratios: list[float] = []
    for place in range(len(history) - per_day, -1, -per_day):  # the slot that has just begun
        now = known(history[place])
        later = known(history[place + ahead]) if ahead < per_day else None
        if now is not None and later is not None and now > 0:
            ratios.append(later / now)
        if len(ratios) == days:
            return min(ratios)
    return None
