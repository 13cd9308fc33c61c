"""Bringing work home: what runs on rented nodes goes on at home as soon as there is room."""

from __future__ import annotations

from hybrid.core.models import Reason
from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.dispatch import wants_home
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.pack import pack_for


def bring_home(draft: Draft) -> None:
    """Move jobs from the cloud to free GPUs at home: the widest first, then the oldest."""
    if not draft.in_cloud or draft.board.home.free_gpus <= 0:
        return
    terms = draft.terms
    order = sorted(
        draft.in_cloud.values(), key=lambda job: (-job.gpus, job.useful_from_s or 0.0, job.job_id)
    )
    for job in order:
        if draft.stops_left <= 0:
            return
        if not wants_home(job, draft):
            continue
        slots = draft.board.home.fit(job)
        pack_after_s = terms.params.home_pack_ratio * terms.params.home_ratio * job.trip_s
        if slots is None and terms.stretch_s(job) > pack_after_s and pack_for(draft, job):
            slots = draft.board.home.fit(job)
        if slots is not None:
            draft.move(job, slots, "home", _reason(job, draft))


def _reason(job: JobView, draft: Draft) -> Reason:
    terms = draft.terms
    return Reason(
        code="come_home",
        message=f"has run on a rented node for {terms.stretch_s(job):.0f} s, and on-prem GPUs "
        f"are free",
        facts={
            "rented_s": round(terms.stretch_s(job), 3),
            "slack_s": round(terms.slack_s(job), 3),
            "gpus": job.gpus,
        },
    )
