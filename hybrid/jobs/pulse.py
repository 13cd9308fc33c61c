"""How the queue went of late: what the policy wants to know beside the present.

The same counts as in the simulator, told by what happens on the running cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hybrid.core.models import Job, Offer
from hybrid.core.outcomes import Outcomes
from hybrid.core.policy.jobs.params import JobParams
from hybrid.core.policy.jobs.terms import reserve_s
from hybrid.core.policy.plan import Starts
from hybrid.core.rate import Rate

RELEASES_HALF_LIFE_S = 1_800.0
"""How long an end counts for the rate at which GPUs at home become free."""


class Pulse:
    """First starts, waits and suspensions of jobs, and GPUs that jobs at home gave back.

    Args:
        params: Thresholds of the policy.
    """

    def __init__(self, params: JobParams) -> None:
        self._params = params
        self._outcomes = Outcomes(params.wait_target_s)
        self._released = Rate(RELEASES_HALF_LIFE_S)
        self._seen: set[str] = set()

    def see(self, waiting: Iterable[Job]) -> None:
        """Count new jobs among those that wait for their first place, in order of arrival."""
        ids = set()
        for job in waiting:
            ids.add(job.job_id)
            if job.job_id not in self._seen and job.attempt == 0:
                self._outcomes.submit(job.job_id, job.created_at_s)
        self._seen = ids

    def follow_clock(self, by_s: float) -> None:
        """Move instants of jobs that wait: the wall clock was set by so much."""
        self._outcomes.follow_clock(by_s)

    def note_place(self, job: Job, now_s: float, *, is_home: bool) -> None:
        """Count that a job got a place, from the queue or by a move."""
        self._outcomes.place(job.job_id, now_s, is_home=is_home)

    def note_suspension(self, job: Job) -> None:
        """Count a job that went back into the queue out of its slack."""
        self._outcomes.suspend(job.job_id)

    def note_start(self, wait_s: float, now_s: float) -> None:
        """Count the first start of a job after a wait."""
        self._outcomes.begin(now_s, wait_s)

    def note_end(self, job: Job, now_s: float, *, is_home: bool) -> None:
        """Count the end of a job, and GPUs at home that it gave back."""
        self._outcomes.forget(job.job_id)
        if is_home:
            self._released.add(now_s, job.spec.gpus * len(job.slots))

    def starts(
        self, now_s: float, offers: Iterable[Offer], boot_s_by_offer: Mapping[str, float]
    ) -> Starts | None:
        """Return how jobs got their places; `None` before the first start."""
        soon_s = self._params.soon_ratio * reserve_s(offers, boot_s_by_offer, self._params)
        starts = self._outcomes.starts(now_s, soon_s)
        return starts if starts.count else None

    def released_gpus_per_s(self, now_s: float) -> float | None:
        """Return how fast GPUs at home become free; `None` when it was not watched for long."""
        return self._released.per_s(now_s)

    def look_back(self, jobs: Iterable[Job]) -> None:
        """Learn from jobs of before a restart, whatever their order."""
        began = [(job.started_at_s, job) for job in jobs if job.started_at_s and job.spec.is_queued]
        for at_s, job in sorted(began, key=lambda pair: pair[0]):
            self.note_start(at_s - job.created_at_s, at_s)
