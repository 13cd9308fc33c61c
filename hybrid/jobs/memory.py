"""What one controller process remembers of live jobs between two ticks, and the ledger need not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hybrid.core.models import Job
from hybrid.core.ports import Clock

# Ray answers for a job a moment after it took it; a job unknown for longer is lost.
_LOST_AFTER_S = 60.0


@dataclass
class Memory:
    """Doubts, failures and looks, by job id.

    Attributes:
        _doubtful: Queued jobs that Ray may have all the same: its answer was lost, it could not
            be noted, or a controller crashed between the submission and its note. `None` before
            the first step, when all of them are.
        _missed_since_s: Since when Ray does not know a job.
        _failed_at_s: When a job's submission or stop last failed.
        _waited_at_s: When Ray last said of a job that its driver waits.
    """

    clock: Clock
    _doubtful: set[str] | None = None
    _missed_since_s: dict[str, float] = field(default_factory=dict)
    _failed_at_s: dict[str, float] = field(default_factory=dict)
    _waited_at_s: dict[str, float] = field(default_factory=dict)

    # --- doubts ---------------------------------------------------------------------------

    def begin(self, queued: Iterable[Job]) -> None:
        """Doubt all that may have been submitted before this process began; once."""
        if self._doubtful is None:
            self._doubtful = {j.job_id for j in queued if j.slots or not j.spec.is_queued}

    def doubts(self, job: Job) -> bool:
        """Return whether Ray may have a queued job."""
        return job.job_id in (self._doubtful or ())

    def doubt(self, job_id: str) -> None:
        """From now on Ray may have it."""
        self._doubtful = (self._doubtful or set()) | {job_id}

    def settle(self, job_id: str) -> None:
        """It is known again whether Ray has it."""
        self._doubtful = (self._doubtful or set()) - {job_id}

    # --- jobs that Ray does not know ------------------------------------------------------

    def is_missed_for_long(self, job_id: str) -> bool:
        """Note that Ray does not know a job; return whether that has been so for long."""
        now_s = self.clock.monotonic_s()
        return now_s - self._missed_since_s.setdefault(job_id, now_s) >= _LOST_AFTER_S

    def found(self, job_id: str) -> None:
        """Ray knows it, or nobody asks any more."""
        self._missed_since_s.pop(job_id, None)

    # --- failures -------------------------------------------------------------------------

    def failed(self, job_id: str) -> None:
        """Its submission or stop failed now."""
        self._failed_at_s[job_id] = self.clock.monotonic_s()

    def failed_last(self, jobs: Iterable[Job]) -> list[Job]:
        """Return jobs in the order to try them.

        Each failure may cost a long wait, so it ends the round; one that fails again and again
        must not stop the others: it comes last the next time.
        """
        return sorted(jobs, key=lambda j: self._failed_at_s.get(j.job_id, 0.0))

    # --- drivers that wait ----------------------------------------------------------------

    def waits(self, job_id: str) -> None:
        """Ray says now that its driver waits."""
        self._waited_at_s[job_id] = self.clock.now_s()

    def waited_at_s(self, job_id: str) -> float | None:
        """Return when Ray last said that its driver waits."""
        return self._waited_at_s.get(job_id)

    def forget_waits(self) -> None:
        """Forget instants: the wall clock was set."""
        self._waited_at_s.clear()

    # --- all of it ------------------------------------------------------------------------

    def stored(self, job_id: str, *, is_over: bool, is_taken: bool) -> None:
        """Forget what was known of a job's old row, now that the new one is stored.

        Args:
            job_id: Which.
            is_over: Its attempt has ended.
            is_taken: Ray has it, and it has not begun.
        """
        self._failed_at_s.pop(job_id, None)
        self.settle(job_id)
        if not is_taken:
            self._waited_at_s.pop(job_id, None)
        if is_over:
            self.found(job_id)
