"""What to rent for the jobs that may not wait longer, and which boots nobody needs any more."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field

from hybrid.core.labels import admits_any
from hybrid.core.models import Demand, Labels, Node, NodeStatus, Offer, Reason
from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.board import Nodes
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.score import effective_usd_per_hour, is_spot
from hybrid.core.policy.market import Market, is_coming, rented_labels
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.pieces import gpus
from hybrid.core.policy.plan import Host, Launch, Snapshot, Terminate
from hybrid.core.policy.room import Axis, fits
from hybrid.core.policy.words import plural

JOB_WAITS = "job_waits"
"""Code of the reason of each launch for our own queue; such nodes are returned by its rules."""


def urgent(
    draft: Draft, release_gpus_per_s: float | None, hosts: Iterable[Host] = ()
) -> list[JobView]:
    """Return the waiting jobs that money may be spent on, of equal priority the widest first.

    Args:
        draft: The plan so far.
        release_gpus_per_s: How fast GPUs at home become free; `None` when not known. A job that
            will probably get its place sooner than a node could boot, or than its data could be
            shipped, is not rented for before its last moment.
        hosts: On-prem hosts that are joining: what fits there waits for them, until its last
            moment.
    """
    terms = draft.terms
    waiting = []
    ahead = -draft.board.home.free_gpus
    coming = Nodes.of(_node_of(host) for host in hosts if host.is_coming)
    for job in sorted(draft.queue.values(), key=draft.key):
        ahead += job.gpus
        slots = coming.fit(job) if coming.free_gpus > 0 else None
        if slots is not None and not terms.is_last_moment(job):
            coming.take(job, slots)
            continue
        if not draft.may_rent(job):
            continue
        if not terms.is_last_moment(job):
            home_s = ahead / release_gpus_per_s if release_gpus_per_s else None
            if home_s is not None and home_s < terms.params.home_wait_ratio * terms.reserve_s:
                continue
            if ships_too_long(job, home_s):
                continue
        waiting.append(job)
    return sorted(
        waiting, key=lambda job: (-job.priority, -job.gpus, terms.deadline_s(job), job.job_id)
    )


def ships_too_long(job: JobView, home_s: float | None) -> bool:
    """Return whether a job's data would arrive later than its place at home.

    Args:
        job: It waits.
        home_s: How long home needs for it and all before it; `None` when not known.
    """
    if job.data_s is None:
        return True
    return home_s is not None and job.data_s > home_s


def _node_of(host: Host) -> Node:
    return Node(
        node_id=host.name,
        host=host.name,
        labels=host.labels,
        total=host.shape,
        available=host.shape,
        status=NodeStatus.IDLE,
    )


def rent(
    waiting: list[JobView], snapshot: Snapshot, draft: Draft, params: PolicyParams
) -> list[Launch]:
    """Return launches for what neither free nor coming rented capacity holds.

    Args:
        waiting: Jobs that may be rented for, in order.
        snapshot: What was seen.
        draft: The plan so far.
        params: Thresholds.
    """
    if not waiting:
        return []
    capacity = Capacity.of(snapshot, draft)
    missing = [(job, pieces) for job in waiting if (pieces := capacity.place(job))]
    if not missing:
        return []
    axis = Axis.of(piece for job, _ in missing for piece in job.pieces)
    buyer = _Buyer(Market.of(snapshot, params, axis), params, draft, capacity)
    for job, pieces in missing:
        if len(buyer.launches) >= params.launches_per_tick:
            break
        buyer.buy(job, pieces)
    return buyer.launches


def unneeded_boots(snapshot: Snapshot) -> list[Terminate]:
    """Return the ends of all boots; to be asked for only when nothing waits for a node."""
    reason = Reason(code="not_needed", message="nothing that waits needs it any more")
    return [
        Terminate(instance_id=instance.instance_id, reason=reason)
        for instance in sorted(snapshot.instances, key=lambda i: i.instance_id)
        if instance.reason.code == JOB_WAITS and is_coming(instance, now_s=snapshot.now_s)
    ]


@dataclass
class Capacity:
    """Rented GPUs that are free or coming, by kind of node.

    Attributes:
        free: For each kind, the free GPUs of its nodes, in ascending order.
        labels: Labels of each kind.
    """

    free: dict[str, list[float]] = field(default_factory=dict)
    labels: dict[str, Labels] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, draft: Draft) -> Capacity:
        """Return what is free on the board's cloud nodes, and what boots."""
        capacity = cls()
        cloud = draft.board.cloud
        offer_by_instance = {i.instance_id: i.offer for i in snapshot.instances}
        there = set()
        for node in snapshot.nodes:
            if node.instance_id:
                there.add(node.instance_id)
                offer = offer_by_instance.get(node.instance_id)
                if node.node_id in cloud.free and offer is not None:
                    capacity.add(offer, cloud.free[node.node_id])
        for instance in snapshot.instances:
            # What comes for work that only Ray knows is counted on by that work.
            if instance.reason.code != JOB_WAITS or instance.instance_id in there:
                continue
            if is_coming(instance, now_s=snapshot.now_s):
                capacity.add(instance.offer, float(instance.offer.gpu_count))
        return capacity

    def add(self, offer: Offer, free: float) -> None:
        """Add a node of an offer with this many GPUs free."""
        if free <= 0:
            return
        if offer.offer_id not in self.free:
            self.free[offer.offer_id] = []
            self.labels[offer.offer_id] = rented_labels(offer)
        insort(self.free[offer.offer_id], free)

    def place(self, job: JobView) -> list[Demand]:
        """Take room for a job's pieces; return those for which there is none."""
        return [piece for piece in job.pieces if not self.take(piece)]

    def take(self, piece: Demand) -> bool:
        """Take room for one piece on the fullest node that holds it."""
        need = gpus(piece.shape)
        best: tuple[float, str, int] | None = None
        for kind, free in self.free.items():
            at = bisect_left(free, need)
            if at < len(free) and (
                not piece.selectors or admits_any(piece.selectors, self.labels[kind])
            ):
                order = (free[at], kind, at)
                if best is None or order < best:
                    best = order
        if best is None:
            return False
        left, kind, at = best
        self.free[kind].pop(at)
        if left > need:
            insort(self.free[kind], left - need)
        return True


@dataclass
class _Buyer:
    """Chooses offers for pieces, under every cap and the ramp."""

    market: Market
    params: PolicyParams
    draft: Draft
    capacity: Capacity
    launches: list[Launch] = field(default_factory=list)
    _offers_by_piece: dict[object, list[Offer]] = field(default_factory=dict)
    _gangs: int = 0

    def buy(self, job: JobView, pieces: list[Demand]) -> None:
        """Launch for the pieces of a job that found no room: for all of them, or for none."""
        left = [piece for piece in pieces if not self.capacity.take(piece)]
        room_left = self.params.launches_per_tick - len(self.launches)
        if not left or len(left) > room_left:
            return
        # A gang is tried on a copy: what its first nodes took is given back when one is missing.
        trial = self.market.copy() if len(left) > 1 else self.market
        chosen: list[Offer] = []
        for piece in left:
            offer = self._best(job, piece, trial)
            if offer is None:
                return
            trial.take(offer, 1)
            chosen.append(offer)
        self.market = trial
        self._gangs += len(chosen) > 1
        for piece, offer in zip(left, chosen, strict=True):
            self.capacity.add(offer, offer.gpu_count - gpus(piece.shape))
            gang = self._gangs if len(chosen) > 1 else 0
            self.launches.append(Launch(offer=offer, reason=self._reason(job, offer), gang=gang))

    def _best(self, job: JobView, piece: Demand, market: Market) -> Offer | None:
        """Return the offer to rent for a piece: the right size, unless a larger is far cheaper."""
        terms = self.draft.terms
        priced = []
        for offer in self._holding(piece, market):
            if market.room_for(offer, 1):
                usd = effective_usd_per_hour(offer, job, terms)
                if usd is not None:
                    priced.append((offer, self._per_gpu(offer, usd)))
        if not priced:
            return None
        rank = min(offer.rank for offer, _ in priced)
        priced = [(offer, usd) for offer, usd in priced if offer.rank == rank]
        most = min(usd for _, usd in priced) / (1 - terms.params.node_size_margin)
        fair = [(offer, usd) for offer, usd in priced if usd <= most]
        return min(fair, key=lambda p: (p[1] * p[0].gpu_count, p[0].gpu_count, p[0].offer_id))[0]

    def _holding(self, piece: Demand, market: Market) -> list[Offer]:
        """Return the offers whose empty node holds a piece; thousands of pieces are alike."""
        key = (tuple(sorted(piece.shape.items())), piece.selectors)
        if key not in self._offers_by_piece:
            self._offers_by_piece[key] = [
                offer
                for offer in market.offers
                if fits(piece.shape, offer.shape)
                and admits_any(piece.selectors, market.labels[offer.offer_id])
            ]
        return self._offers_by_piece[key]

    def _per_gpu(self, offer: Offer, usd_per_hour: float) -> float:
        # What is taken back now and then must be cheaper by a margin to be preferred.
        margin = self.draft.terms.params.spot_margin if is_spot(offer) else 0.0
        return usd_per_hour / (1 - margin) / max(1, offer.gpu_count)

    def _reason(self, job: JobView, offer: Offer) -> Reason:
        terms = self.draft.terms
        waited_s = terms.now_s - job.submitted_at_s
        left_s = terms.deadline_s(job) - terms.now_s
        data = {"data_s": job.data_s, "data_usd": job.data_usd} if job.data_s else {}
        return Reason(
            code=JOB_WAITS,
            message=f"{job.job_id} ({plural(job.gpus, 'GPU')}) may not wait longer: it must run "
            f"in {left_s:.0f} s, and home has no room{_data_words(job)}",
            facts={
                **data,
                "for_job": job.job_id,
                "gpus": job.gpus,
                "since_submission_s": round(waited_s, 3),
                "deadline_in_s": round(left_s, 3),
                "reserve_s": round(terms.reserve_s, 3),
                "usd_per_hour": offer.usd_per_hour,
            },
        )


def _data_words(job: JobView) -> str:
    if job.data_s is None:
        return "; how long its data takes to ship is not known"
    return f"; its data takes {job.data_s:.0f} s to ship" if job.data_s else ""
