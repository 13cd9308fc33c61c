"""Percentiles from the cumulative histograms that Prometheus metrics are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

_K = TypeVar("_K")

Buckets: TypeAlias = Mapping[float, float]
"""Upper bound -> how many observations were at or below it, counted from the start of a process."""


def percentile(buckets: Buckets, percent: float) -> float | None:
    """Return a percentile, within a bucket by a straight line as Prometheus does.

    Above the largest finite bound nothing is known but that: its value is that bound.

    Args:
        buckets: Upper bound -> observations at or below it. Made monotonic when they are not.
        percent: From 0 to 100.

    Returns:
        `None` when nothing was observed, or the last bucket is not infinite.
    """
    bounds = sorted(bound for bound in buckets if not math.isnan(bound))
    if not bounds or bounds[-1] != math.inf:
        return None
    counts: list[float] = []
    for bound in bounds:
        count = buckets[bound]
        counts.append(max(count if math.isfinite(count) else 0.0, counts[-1] if counts else 0.0))
    total = counts[-1]
    if total <= 0:
        return None
    rank = min(max(percent, 0.0), 100.0) / 100 * total
    place = next(n for n, count in enumerate(counts) if count >= rank and count > 0)
    if bounds[place] == math.inf:
        return bounds[place - 1] if place else None
    low = bounds[place - 1] if place else 0.0
    below = counts[place - 1] if place else 0.0
    inside = counts[place] - below
    return low + (bounds[place] - low) * ((rank - below) / inside if inside else 1.0)


@dataclass
class Growth(Generic[_K]):
    """Adds up what histograms grew by from one look to the next.

    Each series has a key of its own, since a process that was replaced counts from zero again:
    a series that fell is such a one, and counts as it is.

    Attributes:
        buckets: What has been added up since the last `take`.
    """

    buckets: dict[float, float] = field(default_factory=dict)
    _before: dict[_K, dict[float, float]] = field(default_factory=dict)

    def add(self, key: _K, now: Buckets, *, is_new: bool = True) -> None:
        """Add what one series grew by.

        Args:
            key: The series.
            now: How it stands.
            is_new: When it was never seen: it began since the last look, so all of it is growth;
                otherwise it may be old, and only what comes later counts.
        """
        before = self._before.get(key)
        self._before[key] = dict(now)
        if before is None and not is_new:
            return
        is_reset = before is None or any(now.get(b, 0.0) < n for b, n in before.items())
        for bound, count in now.items():
            grown = count if is_reset or before is None else count - before.get(bound, 0.0)
            self.buckets[bound] = self.buckets.get(bound, 0.0) + grown

    def forget(self, keys: Iterable[_K]) -> None:
        """Forget series, so that they are seen for the first time again."""
        for key in list(keys):
            self._before.pop(key, None)

    @property
    def keys(self) -> tuple[_K, ...]:
        """Every series that is remembered."""
        return tuple(self._before)

    def take(self) -> dict[float, float]:
        """Return what was added up, and begin anew."""
        taken, self.buckets = self.buckets, {}
        return taken
