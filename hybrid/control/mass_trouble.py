"""When much of the cluster looks dead at once: nothing is ended for a while, and people are told.

It is then more likely that we see wrongly than that all of it died: a head that has just begun
again, a network that is cut between it and the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.control.book import Book
from hybrid.control.params import ControlParams
from hybrid.core.policy.health import Health
from hybrid.core.policy.words import plural
from hybrid.core.ports import Clock
from hybrid.core.quantity import duration_text
from hybrid.core.views import Alarm

_NAMED = 5


@dataclass
class MassTrouble:
    """Holds off what would end nodes that look dead; for so long at most, since they cost money.

    Attributes:
        health: As of the last look at Ray that it answered.
    """

    book: Book
    clock: Clock
    params: ControlParams
    health: Health = field(default_factory=Health)
    _since_s: float | None = None
    _is_told: bool = False

    @property
    def is_holding(self) -> bool:
        """Whether a node that looks dead must not be ended for that now."""
        return self._since_s is not None and self._left_s > 0

    def look(self, health: Health) -> None:
        """Take note of what Ray shows now; write down when the trouble begins and ends."""
        self.health = health
        if not health.is_mass_trouble(self.params.policy.unhealthy_ratio):
            self._since_s = None
        elif self._since_s is None:
            self._since_s = self.clock.monotonic_s()
        is_trouble = self._since_s is not None
        if is_trouble != self._is_told:
            kind = "mass_trouble_began" if is_trouble else "mass_trouble_ended"
            words = self._words() if is_trouble else "nodes are returned and ended as usual again"
            self.book.record(kind, message=words, bad_count=len(health.bad), count=health.count)
            self._is_told = is_trouble

    def alarm(self) -> Alarm | None:
        """Return what people should know, if there is anything."""
        if self._since_s is None:
            return None
        return Alarm(code="mass_trouble", what=self._words(), since_at_s=self.clock.now_s())

    @property
    def _left_s(self) -> float:
        since_s = self.clock.monotonic_s() if self._since_s is None else self._since_s
        return self.params.mass_hold_s - (self.clock.monotonic_s() - since_s)

    def _words(self) -> str:
        bad, limit = self.health.bad, self.params.policy.unhealthy_ratio
        more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
        held = "those are ended now"
        if self.is_holding:
            left = duration_text(float(max(1, round(self._left_s))))
            held = f"those that are rented are ended in {left} at the earliest"
        return (
            f"{len(bad)} of {plural(self.health.count, 'node')} look dead at once "
            f"({', '.join(bad[:_NAMED])}{more}), more than idle.unhealthy_ratio ({limit:g}): no "
            f"node is returned meanwhile, and {held} (idle.unhealthy_hold), since we may see "
            "wrongly. Look at the network between the head and these nodes"
        )
