"""Time that stands by its word: the wall clock's jumps are seen, and applied in one place.

Deadlines are stored as instants of the wall clock, so that they outlive a crash. When the wall
clock is set by an hour, every stored instant means something else than it did. So the loop reads
the wall clock at the start of a tick only, and moves what is stored by the same jump.
"""

from __future__ import annotations

from hybrid.core.models import Instance
from hybrid.core.ports import Clock

JUMP_S = 5.0
"""Corrections of less are the daily work of NTP, and no deadline of ours is that fine."""

INSTANTS = (
    "state_at_s",
    "created_at_s",
    "deadline_at_s",
    "first_listed_at_s",
    "missing_since_s",
    "joined_at_s",
    "lease_until_s",
)
"""Fields of a live row that are moved with the clock."""

_AHEAD = ("deadline_at_s", "lease_until_s")


class SteadyClock:
    """See `hybrid.core.ports.Clock`. Follows the monotonic clock until `catch_up`.

    A suspended machine looks like a jump forward: it too must not find everything overdue.

    Args:
        clock: The system's clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_s = clock.now_s() - clock.monotonic_s()

    def now_s(self) -> float:
        """Return seconds since the epoch, as of the last `catch_up` and the time since."""
        return self._clock.monotonic_s() + self._offset_s

    def monotonic_s(self) -> float:
        """See `Clock.monotonic_s`."""
        return self._clock.monotonic_s()

    def sleep(self, duration_s: float) -> None:
        """See `Clock.sleep`."""
        self._clock.sleep(duration_s)

    def drift_s(self) -> float:
        """Return how far the wall clock is ahead of this one."""
        return self._clock.now_s() - self.now_s()

    def has_jumped(self) -> bool:
        """Return whether the wall clock was set since the last `catch_up`."""
        return abs(self.drift_s()) >= JUMP_S

    def catch_up(self) -> float:
        """Go on from the wall clock if it jumped; return by how much, 0 if it did not."""
        if not self.has_jumped():
            return 0.0
        jump_s = self.drift_s()
        self._offset_s += jump_s
        return jump_s


def latest_s(instance: Instance) -> float:
    """Return the last instant that has passed for an instance, as its row has it."""
    values = (getattr(instance, name) for name in INSTANTS if name not in _AHEAD)
    return max((float(value) for value in values if value is not None), default=0.0)
