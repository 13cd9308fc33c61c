"""A clock that moves only when it is told to."""

from __future__ import annotations


class VirtualClock:
    """See `hybrid.core.ports.Clock`. The wall clock can jump; the monotonic one cannot."""

    def __init__(self, now_s: float = 1_790_000_000.0) -> None:
        self._start_s = now_s
        self._now_s = now_s
        self._monotonic_s = 1_000.0

    def now_s(self) -> float:
        return self._now_s

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def sleep(self, duration_s: float) -> None:
        self.advance(max(0.0, duration_s))

    def advance(self, duration_s: float) -> None:
        self._now_s += duration_s
        self._monotonic_s += duration_s

    def jump(self, by_s: float) -> None:
        """Set the wall clock without time passing."""
        self._now_s += by_s

    def true_s(self) -> float:
        """Return what a wall clock shows that never jumped: a cloud's own."""
        return self._start_s + self._monotonic_s - 1_000.0
