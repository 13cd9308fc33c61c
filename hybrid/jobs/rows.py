"""The live jobs, in step with the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.core.models import Event, Job
from hybrid.core.ports import Ledger


@dataclass
class JobBook:
    """Live jobs in memory: ten thousand rows are not read again in every tick.

    One writer, so what was read once and written through stays true. After a write that failed
    nobody knows what the ledger has, so everything is read again.

    Attributes:
        version: Changes with every write and read.
    """

    ledger: Ledger
    version: int = 0
    _by_id: dict[str, Job] = field(default_factory=dict)
    _is_fresh: bool = False

    def live(self) -> list[Job]:
        """Return the jobs that have not ended, oldest first."""
        self._read()
        return list(self._by_id.values())

    def get(self, job_id: str) -> Job | None:
        """Return a job, ended or not."""
        self._read()
        return self._by_id.get(job_id) or self.ledger.job(job_id)

    def save(self, job: Job, *events: Event) -> None:
        """Store a new or changed job with its events. Raises `LedgerError`."""
        self._is_fresh, was_fresh = False, self._is_fresh
        self.ledger.save_job(job, *events)
        self._is_fresh = was_fresh
        self.version += 1
        if job.state.is_ended:
            self._by_id.pop(job.job_id, None)
        elif was_fresh:
            self._by_id[job.job_id] = job

    def _read(self) -> None:
        if not self._is_fresh:
            found = self.ledger.jobs(is_live_only=True, limit=None)
            self._by_id = {job.job_id: job for job in found}
            self._is_fresh = True
            self.version += 1
