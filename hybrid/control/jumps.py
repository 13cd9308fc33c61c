"""Moving what is stored when the wall clock jumps."""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.control.book import Book
from hybrid.control.steady import INSTANTS, JUMP_S, SteadyClock, latest_s
from hybrid.core.models import Event, Instance
from hybrid.core.ports import Clock


@dataclass(frozen=True)
class Move:
    """A value that has to change with the clock.

    Both values are kept: a write whose answer was lost is repeated without moving twice, and a
    value that somebody changed meanwhile is left alone.
    """

    before: float
    after: float


@dataclass
class Jumps:
    """Notices that the wall clock was set, and moves stored instants by the same.

    With another clock than a `SteadyClock` it notices nothing.

    Attributes:
        _rows: What is still to be moved, by instance and field.
        _offers: The same by failure.
        _close: The same for the end of `down`.
        _told: What is still to be written down.
    """

    book: Book
    clock: Clock
    _rows: dict[str, dict[str, Move]] = field(default_factory=dict)
    _offers: dict[str, Move] = field(default_factory=dict)
    _close: Move | None = None
    _told: list[Event] = field(default_factory=list)

    def look_back(self, *, rest_s: float) -> None:
        """Find instants that lie in the future: the clock was set back while no controller ran.

        A clock that was set forward looks like a long absence, and is taken for one.

        Args:
            rest_s: No offer is ever left alone for longer than this.
        """
        self.book.read()
        now_s = self.clock.now_s()
        most_s = 0.0
        for instance in self.book.all():
            ahead_s = latest_s(instance) - now_s
            if ahead_s >= JUMP_S:
                self._move(instance, -ahead_s)
                most_s = max(most_s, ahead_s)
        for failure in self.book.failures():
            if failure.until_s > now_s + rest_s + JUMP_S:
                self._offers[failure.key] = Move(failure.until_s, now_s + rest_s)
        if most_s:
            what = f"while no controller ran, the wall clock was set back by {most_s:.0f} s or more"
            self._tell(what, -most_s)

    def has_jumped(self) -> bool:
        """Return whether the clock was set since the last look: instants mean something else."""
        return isinstance(self.clock, SteadyClock) and self.clock.has_jumped()

    def notice(self) -> float:
        """Go on from the wall clock as it is now; return by how much it was set.

        Call `apply` before, so that nothing is pending, and afterwards.
        """
        if not isinstance(self.clock, SteadyClock) or not self.clock.has_jumped():
            return 0.0
        self.book.read()
        mode = self.book.ledger.mode()
        by_s = self.clock.catch_up()
        for instance in self.book.all():
            self._move(instance, by_s)
        for failure in self.book.failures():
            self._offers[failure.key] = Move(failure.until_s, failure.until_s + by_s)
        if mode.close_by_s is not None:
            self._close = Move(mode.close_by_s, mode.close_by_s + by_s)
        self._tell(f"the wall clock was set by {by_s:+.0f} s", by_s)
        return by_s

    def apply(self) -> None:
        """Store the moved instants. Raises `LedgerError`; call again then."""
        if not self._rows and not self._offers and not self._close and not self._told:
            return
        self.book.read()
        if self._close is not None:
            mode = self.book.ledger.mode()
            if mode.close_by_s == self._close.before:
                changes = {"close_by_s": self._close.after}
                self.book.ledger.set_mode(mode.model_copy(update=changes))
            self._close = None
        for key, move in list(self._offers.items()):
            failure = self.book.failure(key)
            if failure is not None and failure.until_s == move.before:
                self.book.save_failure(failure.model_copy(update={"until_s": move.after}))
            del self._offers[key]
        for key, moves in list(self._rows.items()):
            instance = self.book.get(key)
            if instance is not None:
                due = {n: m.after for n, m in moves.items() if getattr(instance, n) == m.before}
                self.book.note(instance, **due)
            del self._rows[key]
        self.book.record_all(self._told)
        self._told = []

    def _move(self, instance: Instance, by_s: float) -> None:
        values = {name: getattr(instance, name) for name in INSTANTS}
        self._rows[instance.instance_id] = {
            name: Move(value, value + by_s) for name, value in values.items() if value is not None
        }

    def _tell(self, what: str, jump_s: float) -> None:
        advice = "deadlines and leases move with it. Check the time service of the head host"
        message = f"{what}; {advice}"
        event = self.book.event("clock_jumped", message=message, jump_s=round(jump_s, 1))
        self._told.append(event)
