"""Moves the instants of live jobs when the wall clock was set, each once."""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.core.models import Job
from hybrid.jobs import attempts
from hybrid.jobs.rows import JobBook

# Corrections of less are the daily work of NTP.
_AHEAD_S = 5.0


@dataclass
class Clocked:
    """The jobs before and after the clock was set, until that is stored."""

    book: JobBook
    _moved: dict[str, tuple[Job, Job]] = field(default_factory=dict)

    def look_back(self, now_s: float) -> None:
        """Find jobs of the future: the clock was set back while no controller ran."""
        for job in self.book.live():
            ahead_s = attempts.latest_s(job) - now_s
            if ahead_s >= _AHEAD_S:
                self._moved[job.job_id] = (job, attempts.moved_by(job, -ahead_s))

    def follow(self, by_s: float) -> None:
        """Plan to move all live jobs by so much. Call `settle` before, and afterwards."""
        for job in self.book.live():
            self._moved[job.job_id] = (job, attempts.moved_by(job, by_s))

    def settle(self) -> None:
        """Store the moved instants. Raises `LedgerError`; call again then."""
        for job_id, (before, after) in list(self._moved.items()):
            told = self.book.get(job_id)
            if told is not None and not told.state.is_ended:
                moved = attempts.with_move(told, before, after)
                if moved != told:
                    self.book.save(moved)
            del self._moved[job_id]
