"""How the queue went of late: what the policy wants to know beside the present."""

from __future__ import annotations

from hybrid.core.models import Job
from hybrid.core.policy.plan import Starts
from hybrid.core.rate import Rate

WAITS_HALF_LIFE_S = 3 * 86_400.0
"""How long a start counts for the share of starts in time: long enough for a week's bursts."""

RELEASES_HALF_LIFE_S = 1_800.0
"""How long an end counts for the rate at which GPUs at home become free."""


class Pulse:
    """First starts of jobs, and GPUs that jobs at home gave back by ending.

    Args:
        wait_target_s: A first start after a longer wait counts as late.
    """

    def __init__(self, wait_target_s: float) -> None:
        self._wait_target_s = wait_target_s
        self._started = Rate(WAITS_HALF_LIFE_S)
        self._late = Rate(WAITS_HALF_LIFE_S)
        self._released = Rate(RELEASES_HALF_LIFE_S)

    def note_start(self, wait_s: float, now_s: float) -> None:
        """Count the first start of a job after a wait."""
        self._started.add(now_s, 1.0)
        self._late.add(now_s, float(wait_s > self._wait_target_s))

    def note_end(self, gpus: float, now_s: float) -> None:
        """Count GPUs at home that a job gave back by ending."""
        self._released.add(now_s, gpus)

    def starts(self, now_s: float) -> Starts | None:
        """Return how first starts went; `None` before the first."""
        count = self._started.total(now_s)
        return Starts(count=count, late_count=self._late.total(now_s)) if count else None

    def released_gpus_per_s(self, now_s: float) -> float | None:
        """Return how fast GPUs at home become free; `None` when it was not watched for long."""
        return self._released.per_s(now_s)

    def look_back(self, jobs: list[Job]) -> None:
        """Learn from jobs of before a restart, whatever their order."""
        began = [(job.started_at_s, job) for job in jobs if job.started_at_s and job.spec.is_queued]
        for at_s, job in sorted(began, key=lambda pair: pair[0]):
            self.note_start(at_s - job.created_at_s, at_s)
