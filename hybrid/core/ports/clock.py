"""Time, so that tests and the simulator own it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time, so that tests and the simulator own it."""

    def now_s(self) -> float:
        """Return seconds since the epoch, UTC. May jump; for stored instants only."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds that never go back. For durations."""
        ...

    def sleep(self, duration_s: float) -> None:
        """Wait; returns at once when `duration_s` is not positive."""
        ...
