"""The system's clock; the only place that reads it."""

from __future__ import annotations

import time


class SystemClock:
    """See `hybrid.core.ports.Clock`."""

    def now_s(self) -> float:
        """Return the wall clock, seconds since the epoch."""
        return time.time()

    def monotonic_s(self) -> float:
        """Return the monotonic clock, seconds."""
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        """Wait."""
        if duration_s > 0:
            time.sleep(duration_s)
