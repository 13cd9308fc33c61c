"""How fast something happens of late: a rate that forgets."""

from __future__ import annotations

import math


class Rate:
    """Amounts per second, the recent ones counting most.

    Args:
        half_life_s: An amount counts half after this time.
    """

    def __init__(self, half_life_s: float) -> None:
        self._decay_per_s = math.log(2) / half_life_s
        self._sum = 0.0
        self._at_s: float | None = None
        self._first_s: float | None = None

    def add(self, at_s: float, amount: float) -> None:
        """Count an amount at a time not before the last one."""
        self._sum = self._faded(at_s) + amount
        self._at_s = at_s
        if self._first_s is None:
            self._first_s = at_s

    def total(self, now_s: float) -> float:
        """Return the sum of all amounts as they count now."""
        return self._faded(now_s)

    def per_s(self, now_s: float) -> float | None:
        """Return the rate now; `None` until it was watched for two half-lives."""
        if self._first_s is None or (now_s - self._first_s) * self._decay_per_s < 2 * math.log(2):
            return None
        return self._faded(now_s) * self._decay_per_s

    def _faded(self, now_s: float) -> float:
        if self._at_s is None:
            return 0.0
        return self._sum * math.exp(-self._decay_per_s * max(0.0, now_s - self._at_s))
