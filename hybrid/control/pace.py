"""The usual course of a day's money, read from the ledger once an hour."""

from __future__ import annotations

from collections.abc import Iterable

from hybrid.control.book import Book
from hybrid.core.cost import DAY_S, HOUR_S, Payment, day_start_s, payment
from hybrid.core.models import Caps
from hybrid.core.pacing import DAYS, share_by, usual_course


class Pace:
    """What is usually spent of a day's money by now, where there is a daily cap."""

    def __init__(self, book: Book, caps: Caps) -> None:
        self._book = book
        self._caps = caps
        self._course: tuple[float, ...] | None = None
        self._read_at_s: float | None = None

    def usual_share(self, now_s: float) -> float | None:
        """Return the share, 0 to 1; `None` without a daily cap or a habit.

        Raises:
            LedgerError: The ledger cannot be read.
        """
        if self._caps.usd_per_day is None:
            return None
        # Earlier days change little: what was rented over midnight is booked when it ends.
        hour = now_s // HOUR_S
        if self._read_at_s != hour:
            self._course = usual_course(self._payments(now_s), now_s=now_s)
            self._read_at_s = hour
        return share_by(self._course, now_s) if self._course else None

    def _payments(self, now_s: float) -> Iterable[Payment]:
        since_s = day_start_s(now_s) - DAYS * DAY_S
        yield from map(payment, self._book.ledger.spends(since_s=since_s))
        for instance in self._book.all():
            usd = instance.offer.usd_per_hour * max(0.0, now_s - instance.created_at_s) / HOUR_S
            yield Payment(instance.created_at_s, now_s, usd)
