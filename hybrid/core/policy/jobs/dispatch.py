"""Which waiting jobs start on what is free now: home for everybody, rented nodes for the urgent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from hybrid.core.labels import sites
from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.board import Nodes
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.score import trip_usd
from hybrid.core.policy.pieces import gpus


def dispatch(draft: Draft, *, may_go_out: bool = True) -> None:
    """Start waiting jobs where they fit.

    At home the jobs that could never come back from the cloud go first, then the one that is
    late soonest; smaller ones fill what the larger cannot use. A rented node that is free
    takes only work that money may be spent on: a job that can wait would keep it rented.

    Args:
        draft: The plan so far.
        may_go_out: Whether rented nodes may take work at all.
    """
    if not draft.queue:
        return
    _dispatch_home(draft)
    if may_go_out and draft.queue and draft.board.cloud.free_gpus > 0:
        _dispatch_cloud(draft)


def fill(
    draft: Draft,
    nodes: Nodes,
    order: Iterable[JobView],
    code: str,
    holds_back: Callable[[JobView], bool] | None = None,
    starves: Callable[[JobView], bool] | None = None,
) -> None:
    """Start waiting jobs where they fit, in an order; one that does not fit holds up no other.

    Args:
        draft: The plan so far.
        nodes: A site of its board.
        order: Waiting jobs.
        code: Why they start.
        holds_back: Which of them leave free GPUs to others.
        starves: Which of them nodes are kept for when they do not fit.
    """
    failed: set[tuple[object, ...]] = set()
    for job in order:
        if nodes.free_gpus <= 0:
            return
        # Equal jobs fail alike, since what is free only shrinks.
        if job.kind in failed or (holds_back and holds_back(job)):
            continue
        slots = nodes.fit(job, without=draft.kept_from(job))
        if slots is None:
            failed.add(job.kind)
            if starves and starves(job):
                draft.keep_for(job)
        else:
            draft.start(job, slots, draft.reason(code, job))


def _dispatch_home(draft: Draft) -> None:
    if draft.board.home.free_gpus <= 0:
        return

    @cache
    def is_wanted() -> bool:
        return any(wants_home(job, draft) for job in draft.in_cloud.values())

    least = max(_rank(job) for job in draft.queue.values())

    def holds_back(job: JobView) -> bool:
        """Return whether a job makes way for work that costs money.

        Best-effort work does, and a suspended job with time left; but not where less urgent work
        would get the place instead.
        """
        if not job.is_filler:
            is_suspended = job.is_started and job.checkpoint is not None
            if not is_suspended or draft.terms.is_last_moment(job) or _rank(job) < least:
                return False
        return is_wanted()

    def starves(job: JobView) -> bool:
        """Return whether a job is late and nothing can be rented for it: small ones pass it."""
        if job.is_filler or draft.terms.now_s < draft.terms.deadline_s(job):
            return False
        return draft.terms.usd_per_gpu_hour <= 0 or is_only_at_home(job)

    order = sorted(draft.queue.values(), key=draft.key)
    fill(draft, draft.board.home, order, "free_at_home", holds_back, starves)


def _dispatch_cloud(draft: Draft) -> None:
    cloud = draft.board.cloud
    waiting = [job for job in draft.queue.values() if draft.may_rent(job)]
    guard = Guard.of(waiting)
    for job in sorted(
        waiting, key=lambda job: (-job.priority, draft.terms.deadline_s(job), job.job_id)
    ):
        if job.checkpoint is None:
            continue  # See `exchange`: it would stay there to its end.
        slots = cloud.fit(job)
        if slots is not None and guard.allows(job, slots[0].node_id, cloud):
            draft.start(job, slots, draft.reason("free_rented", job))


@dataclass(frozen=True)
class Guard:
    """Keeps whole rented nodes for the gangs that wait for them.

    Attributes:
        count: How many whole nodes they need together.
        size: GPUs of such a node.
    """

    count: int = 0
    size: float = 0.0

    @classmethod
    def of(cls, waiting: list[JobView]) -> Guard:
        """Return the guard for the gangs among the jobs that may be rented for."""
        gangs = [job for job in waiting if not job.is_single]
        if not gangs:
            return cls()
        return cls(
            sum(len(job.pieces) for job in gangs),
            max(gpus(job.pieces[0].shape) for job in gangs),
        )

    def allows(self, job: JobView, node_id: str, cloud: Nodes) -> bool:
        """Return whether a job may start on the node it would get."""
        if not self.count or not job.is_single:
            return True
        if cloud.free[node_id] < self.size or cloud.free[node_id] < cloud.total[node_id]:
            return True
        whole = sum(len(cloud.at(free)) for free in cloud.levels() if free >= self.size)
        return whole > self.count


def _rank(job: JobView) -> tuple[bool, int]:
    """Return what no other rule of the order may invert; the most urgent has the least."""
    return (job.is_filler, -job.priority)


def is_only_at_home(job: JobView) -> bool:
    """Return whether a job may not run in a cloud."""
    return any("cloud" not in sites(piece.selectors) for piece in job.units)


def wants_home(job: JobView, draft: Draft) -> bool:
    """Return whether a job in the cloud would come home if there were room.

    Not before it has paid as much rent as its way home costs, in time and in shipped data: most
    jobs that ran for a while run on for as long.
    """
    terms = draft.terms
    if job.checkpoint is None:
        return False
    shipping_usd = trip_usd(job, terms.params)
    shipping_s = 0.0
    if shipping_usd and terms.usd_per_gpu_hour and job.gpus:
        shipping_s = 3600 * shipping_usd / (terms.usd_per_gpu_hour * job.gpus)
    if terms.stretch_s(job) < terms.params.home_ratio * (job.trip_s + shipping_s):
        return False
    return terms.slack_s(job) >= job.trip_s and terms.may_interrupt(job)
