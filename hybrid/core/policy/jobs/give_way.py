"""Work of lower rank at home gives way to waiting work.

Best-effort jobs give way to all others, jobs with checkpoints to those of a higher priority.
Slack does not count here: rank is a person's word, slack is only a means to save money.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hybrid.core.models import Demand, Reason
from hybrid.core.models.work import JobView, Slot
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.pieces import gpus


def give_way(draft: Draft) -> None:
    """Give places at home to waiting jobs that outrank what runs there."""
    firm = [job for job in draft.queue.values() if not job.is_filler]
    if not firm:
        return
    top = max(job.priority for job in firm)
    lower = [job for job in draft.at_home.values() if job.is_filler or job.priority < top]
    if not lower:
        return
    failed: set[tuple[int, object]] = set()
    for job in sorted(firm, key=draft.key):
        if draft.kept_from(job):
            continue
        if (job.priority, job.kind) in failed or draft.board.home.fit(job) is not None:
            continue  # What fits and was not started is held back for others.
        clearings = clear_for(job, draft, lower)
        stops = {victim.job_id for clearing in clearings for victim in clearing.victims}
        if not clearings or len(stops) > draft.stops_left:
            failed.add((job.priority, job.kind))
            continue
        for clearing in clearings:
            for victim in clearing.victims:
                if victim.job_id in draft.at_home:
                    draft.suspend(victim, _reason(victim, job))
        slots = tuple(
            Slot(clearing.node_id, size)
            for clearing, size in zip(clearings, job.sizes, strict=True)
        )
        draft.start(job, slots, draft.reason("given_way" if stops else "free_at_home", job))


@dataclass(frozen=True)
class _Clearing:
    """What would be stopped on one node so that a piece fits there.

    Attributes:
        rank: The fewest GPUs of work that is no filler first, then the fewest GPUs.
    """

    rank: tuple[float, float, str]
    node_id: str
    victims: tuple[JobView, ...]


def clear_for(job: JobView, draft: Draft, lower: Iterable[JobView]) -> list[_Clearing]:
    """Return the cheapest nodes to clear, one for each piece of a job, or none at all."""
    by_node: dict[str, list[JobView]] = {}
    for victim in lower:
        if victim.job_id in draft.at_home and _may_stop(victim, job, draft):
            for slot in victim.slots:
                by_node.setdefault(slot.node_id, []).append(victim)
    if not by_node:
        return []
    home = draft.board.home
    places = by_node if job.is_single else home.free
    chosen: list[_Clearing] = []
    for piece in job.pieces:
        used = {clearing.node_id for clearing in chosen}
        options = [
            _clear(piece, node_id, by_node.get(node_id, []), draft)
            for node_id in places
            if node_id not in used
        ]
        best = min((o for o in options if o is not None), key=lambda o: o.rank, default=None)
        if best is None:
            return []
        chosen.append(best)
    return chosen


def _may_stop(victim: JobView, job: JobView, draft: Draft) -> bool:
    if victim.is_filler:
        return True
    return victim.priority < job.priority and draft.terms.may_interrupt(victim)


def _clear(piece: Demand, node_id: str, victims: list[JobView], draft: Draft) -> _Clearing | None:
    home, terms = draft.board.home, draft.terms
    need = gpus(piece.shape) - home.free[node_id]
    stopped: list[JobView] = []
    # Who lost least by it goes first: fillers, then the lowest rank, then the latest start.
    order = sorted(
        victims,
        key=lambda v: (not v.is_filler, v.priority, terms.stretch_s(v), v.job_id),
    )
    for victim in order:
        if need <= 0 and home.admits_after(piece, node_id, _single(stopped)):
            break
        stopped.append(victim)
        need -= _gpus_on(victim, node_id)
    # What turned out not to be needed stays.
    for victim in list(stopped):
        left = _gpus_on(victim, node_id)
        rest = [other for other in stopped if other is not victim]
        if need + left <= 0 and home.admits_after(piece, node_id, _single(rest)):
            stopped, need = rest, need + left
    if need > 0 or not home.admits_after(piece, node_id, _single(stopped)):
        return None
    firm = sum(victim.gpus for victim in stopped if not victim.is_filler)
    rank = (firm, sum(victim.gpus for victim in stopped), node_id)
    return _Clearing(rank, node_id, tuple(stopped))


def _single(jobs: list[JobView]) -> list[JobView]:
    """Return those whose other needs are known to be on the node."""
    return [job for job in jobs if job.is_single]


def _gpus_on(job: JobView, node_id: str) -> float:
    return sum(slot.gpus for slot in job.slots if slot.node_id == node_id)


def _reason(victim: JobView, job: JobView) -> Reason:
    facts = {
        "for_job": job.job_id,
        "for_gpus": job.gpus,
        "gpus": victim.gpus,
        "priority": victim.priority,
        "for_priority": job.priority,
    }
    if victim.is_filler:
        return Reason(
            code="best_effort", message=f"best-effort work leaves for {job.job_id}", facts=facts
        )
    return Reason(
        code="preempted",
        message=f"priority {victim.priority} gives way to {job.job_id} with {job.priority}",
        facts=facts,
    )
