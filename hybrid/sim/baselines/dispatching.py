"""The dispatcher of all baselines: first come, first served, with greedy backfill."""

from __future__ import annotations

from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.dispatch import fill
from hybrid.core.policy.jobs.draft import Draft


def first_come(draft: Draft) -> None:
    """Start waiting jobs where they fit: at home, then on any rented node that is ready.

    In order of submission. A job that does not fit holds up no other.
    """
    for nodes, code in ((draft.board.home, "free_at_home"), (draft.board.cloud, "free_rented")):
        if draft.queue and nodes.free_gpus > 0:
            fill(draft, nodes, sorted(draft.queue.values(), key=_submitted), code)


def _submitted(job: JobView) -> tuple[float, str]:
    return job.submitted_at_s, job.job_id
