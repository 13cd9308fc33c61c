"""Moving what is stored when the wall clock jumps."""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.control.book import Book
from hybrid.control.steady import JUMP_S, SteadyClock, latest_s, moved
from hybrid.core.ports import Clock


@dataclass
class Jumps:
    """Notices that the wall clock was set, and moves stored instants by the same.

    With another clock than a `SteadyClock` it does nothing.

    Attributes:
        _rows, _offers, _close_s, _unnoticed_s: What is still to be moved or told, and by how
            much: a write that fails is repeated, and nothing is moved twice.
    """

    book: Book
    clock: Clock
    _rows: dict[str, float] = field(default_factory=dict)
    _offers: dict[str, float] = field(default_factory=dict)
    _close_s: float = 0.0
    _unnoticed_s: float = 0.0

    def look_back(self) -> None:
        """Find rows that lie in the future: the clock was set back while no controller ran.

        A clock that was set forward looks like a long absence, and is taken for one.
        """
        self.book.read()
        now_s = self.clock.now_s()
        for instance in self.book.all():
            ahead_s = latest_s(instance) - now_s
            if ahead_s >= JUMP_S:
                self._rows[instance.instance_id] = -ahead_s
                self._unnoticed_s = max(self._unnoticed_s, ahead_s)

    def has_jumped(self) -> bool:
        """Return whether the clock was set since the last look: instants mean something else."""
        return isinstance(self.clock, SteadyClock) and self.clock.has_jumped()

    def notice(self) -> float:
        """Go on from the wall clock as it is now; return by how much it was set."""
        if not isinstance(self.clock, SteadyClock) or not self.clock.has_jumped():
            return 0.0
        self.book.read()
        by_s = self.clock.catch_up()
        for instance in self.book.all():
            key = instance.instance_id
            self._rows[key] = self._rows.get(key, 0.0) + by_s
        for failure in self.book.failures():
            self._offers[failure.key] = self._offers.get(failure.key, 0.0) + by_s
        self._close_s += by_s
        return by_s

    def apply(self) -> None:
        """Store the moved instants. Raises `LedgerError`; call again then."""
        if not self._close_s and not self._rows and not self._offers:
            return
        self.book.read()
        if self._close_s:
            self._move_mode()
        if self._unnoticed_s:
            ahead_s, self._unnoticed_s = self._unnoticed_s, 0.0
            self._record(
                f"while no controller ran, the wall clock was set back by {ahead_s:.0f} s or more",
                -ahead_s,
            )
        for key, by_s in list(self._offers.items()):
            failure = self.book.failure(key)
            if failure is not None:
                until_s = failure.until_s + by_s
                self.book.save_failure(failure.model_copy(update={"until_s": until_s}))
            del self._offers[key]
        for key, by_s in list(self._rows.items()):
            instance = self.book.get(key)
            if instance is not None:
                self.book.note(instance, **moved(instance, by_s))
            del self._rows[key]

    def _move_mode(self) -> None:
        mode = self.book.ledger.mode()
        if mode.close_by_s is not None:
            close_by_s = mode.close_by_s + self._close_s
            self.book.ledger.set_mode(mode.model_copy(update={"close_by_s": close_by_s}))
        by_s, self._close_s = self._close_s, 0.0
        self._record(f"the wall clock was set by {by_s:+.0f} s", by_s)

    def _record(self, what: str, jump_s: float) -> None:
        advice = "deadlines and leases move with it. Check the time service of the head host"
        self.book.record("clock_jumped", message=f"{what}; {advice}", jump_s=round(jump_s, 1))
