"""The dispatcher of all baselines: first come, first served, with greedy backfill."""

from __future__ import annotations

from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.board import Nodes
from hybrid.core.policy.jobs.draft import Draft


def first_come(draft: Draft) -> None:
    """Start waiting jobs where they fit: at home, then on any rented node that is ready.

    In order of submission. A job that does not fit holds up no other.
    """
    for nodes, code in ((draft.board.home, "free_at_home"), (draft.board.cloud, "free_rented")):
        if draft.queue and nodes.free_gpus > 0:
            _fill(draft, nodes, code)


def _fill(draft: Draft, nodes: Nodes, code: str) -> None:
    failed: set[tuple[object, ...]] = set()
    for job in sorted(draft.queue.values(), key=_submitted):
        if nodes.free_gpus <= 0:
            return
        # Equal jobs fail alike, since what is free only shrinks.
        if job.kind in failed:
            continue
        slots = nodes.fit(job)
        if slots is None:
            failed.add(job.kind)
        else:
            draft.start(job, slots, draft.reason(code, job))


def _submitted(job: JobView) -> tuple[float, str]:
    return job.submitted_at_s, job.job_id
