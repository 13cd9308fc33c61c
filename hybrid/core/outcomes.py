"""What became of jobs that waited and of jobs that were suspended: whether it was worth it.

Whoever starts jobs tells it; the policy sees the sums (`Starts`).
"""

from __future__ import annotations

from hybrid.core.policy.plan import Starts
from hybrid.core.rate import Rate

# A start counts half after this time: long enough for a week's bursts.
_WAITS_HALF_LIFE_S = 3 * 86_400.0
# Whether home has room soon changes within hours: of jobs that waited, only the last few count.
_KEPT_PER_WAIT = 0.8
_SUSPENDED_HALF_LIFE_S = 12 * 3_600.0
# Who starts at home before this did not wait for others to end.
_AT_ONCE_S = 30.0


class Outcomes:
    """Counts how waits and suspensions end; what is long ago counts little.

    Args:
        wait_target_s: A first start after a longer wait is late.
    """

    def __init__(self, wait_target_s: float) -> None:
        self._wait_target_s = wait_target_s
        self._started = Rate(_WAITS_HALF_LIFE_S)
        self._late = Rate(_WAITS_HALF_LIFE_S)
        self._waited = 0.0
        self._soon = 0.0
        self._resumed = Rate(_SUSPENDED_HALF_LIFE_S)
        self._resumed_out = Rate(_SUSPENDED_HALF_LIFE_S)
        # In order of arrival: new jobs that had no place at home yet, and whether it is too late.
        self._submitted_at_s: dict[str, float] = {}
        self._suspended: set[str] = set()

    def submit(self, job_id: str, now_s: float) -> None:
        """Count a new job."""
        self._submitted_at_s[job_id] = now_s

    def follow_clock(self, by_s: float) -> None:
        """Move what waits: the wall clock was set by so much."""
        self._submitted_at_s = {k: at_s + by_s for k, at_s in self._submitted_at_s.items()}

    def suspend(self, job_id: str) -> None:
        """Count a job that goes back into the queue so that another gets its place."""
        self._suspended.add(job_id)

    def place(self, job_id: str, now_s: float, *, is_home: bool) -> None:
        """Count that a job got a place: from the queue, or by a move."""
        if job_id in self._suspended:
            self._suspended.discard(job_id)
            self._resumed.add(now_s, 1.0)
            self._resumed_out.add(now_s, float(not is_home))
        submitted_at_s = self._submitted_at_s.get(job_id)
        if is_home and submitted_at_s is not None:
            del self._submitted_at_s[job_id]
            if now_s - submitted_at_s > _AT_ONCE_S:
                self._wait(is_soon=True)

    def begin(self, now_s: float, wait_s: float) -> None:
        """Count a first start after a wait."""
        self._started.add(now_s, 1.0)
        self._late.add(now_s, float(wait_s > self._wait_target_s))

    def forget(self, job_id: str) -> None:
        """Count no more on a job that is over."""
        self._suspended.discard(job_id)
        self._submitted_at_s.pop(job_id, None)

    def starts(self, now_s: float, soon_s: float) -> Starts:
        """Return the sums.

        Args:
            now_s: The present.
            soon_s: A job that had no place at home for so long after it came did not get one soon.
        """
        while self._submitted_at_s:
            job_id, submitted_at_s = next(iter(self._submitted_at_s.items()))
            if now_s - submitted_at_s <= soon_s:
                break
            del self._submitted_at_s[job_id]
            self._wait(is_soon=False)
        # Made for each decision, from sums that are right by construction.
        return Starts.model_construct(
            count=self._started.total(now_s),
            late_count=self._late.total(now_s),
            waited_count=self._waited,
            soon_count=self._soon,
            resumed_count=self._resumed.total(now_s),
            resumed_out_count=self._resumed_out.total(now_s),
        )

    def _wait(self, *, is_soon: bool) -> None:
        self._waited = _KEPT_PER_WAIT * self._waited + 1.0
        self._soon = _KEPT_PER_WAIT * self._soon + float(is_soon)
