"""Work that cannot move gets a place at home: a job that can goes to the rented node instead.

Without checkpoints a job that starts in the cloud is paid for to its end. So when a node that
was rented for it is ready, an equal job at home that can be moved goes out, and comes home later.
"""

from __future__ import annotations

from hybrid.core.models import Reason
from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.draft import Draft


def exchange(draft: Draft) -> None:
    """Place jobs without checkpoints for which free rented nodes are there."""
    if draft.board.cloud.free_gpus <= 0:
        return
    for job in sorted(draft.queue.values(), key=draft.key):
        if job.checkpoint is not None or not draft.may_rent(job):
            continue
        slots = draft.board.cloud.fit(job)
        if slots is None:
            continue
        mover = _mover(job, draft) if draft.stops_left > 0 else None
        if mover is None:
            words = "a rented node is free, and no job at home can go there in its place"
            facts = {"gpus": job.gpus}
            draft.start(job, slots, Reason(code="free_rented", message=words, facts=facts))
            continue
        place = mover.slots
        facts = {"gpus": job.gpus, "slack_s": round(draft.terms.slack_s(mover), 3)}
        words = f"goes to a rented node for a while, so that {job.job_id}, which cannot move, "
        words += "gets its place at home"
        out = Reason(code="exchange", message=words, facts={**facts, "for_job": job.job_id})
        draft.move(mover, slots, "exchange", out)
        words = f"takes the place of {mover.job_id}, since it could not come home from the cloud"
        draft.start(job, place, Reason(code="exchange", message=words, facts=facts))


def _mover(job: JobView, draft: Draft) -> JobView | None:
    """Return the job at home with the most slack that could take the rented node instead."""
    terms = draft.terms
    best: tuple[float, str, JobView] | None = None
    for other in draft.at_home.values():
        if other.units != job.units or terms.stretch_s(other) < terms.params.pinned_run_s:
            continue
        slack_s = terms.slack_s(other)
        if slack_s >= 2 * other.trip_s and terms.may_interrupt(other, keep=1):
            order = (-slack_s, other.job_id, other)
            if best is None or order[:2] < best[:2]:
                best = order
    return best[2] if best else None
