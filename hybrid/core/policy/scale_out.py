"""Which instances to launch for the unmet demand, and why the rest waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.core.labels import describe
from hybrid.core.models import Demand, Gang, Offer, Reason
from hybrid.core.policy.explain import finding_for_met, finding_for_unmet, plural, shape_text
from hybrid.core.policy.market import rented_labels
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Finding, Launch, Snapshot
from hybrid.core.policy.queue import Queue, Unmet
from hybrid.core.policy.room import Placed, Room, gpus


@dataclass
class Wanted:
    """Unmet demand that may be rented for now, and how much of it is still uncovered."""

    unmet: Unmet
    left: int


def scale_out(
    snapshot: Snapshot, params: PolicyParams, queue: Queue
) -> tuple[list[Launch], list[Finding]]:
    """Return launches for what broke the queue limit, and a finding for all that waits."""
    wanted = [Wanted(u, u.count) for u in queue.unmet if _may_rent(u, snapshot, queue)]
    launches: list[Launch] = []
    for want in wanted:
        if want.unmet.gang is not None:
            budget = params.launches_per_tick - len(launches)
            launches += _launch_gang(want, want.unmet.gang, snapshot, params, queue, budget)
    singles = [want for want in wanted if want.unmet.gang is None]
    while len(launches) < params.launches_per_tick:
        step = _best_step(singles, queue)
        if step is None:
            break
        count = min(step.count, params.launches_per_tick - len(launches))
        launches += _apply(step, count, snapshot, params, queue)
    left_by_id = {id(want.unmet): want.left for want in wanted}
    findings = [finding_for_met(met) for met in queue.met]
    for unmet in queue.unmet:
        left = left_by_id.get(id(unmet), unmet.count)
        findings += finding_for_unmet(unmet, left, snapshot, params, queue)
    return launches, findings


def _may_rent(unmet: Unmet, snapshot: Snapshot, queue: Queue) -> bool:
    mode = snapshot.mode
    if not queue.is_breach_stable or mode.is_out_paused or mode.is_closing:
        return False
    # By wait, only what waited too long may rent; by size, the whole queue may.
    return unmet.is_rentable and (unmet.is_due or queue.breach_code == "queue_gpus")


@dataclass(frozen=True)
class Step:
    """Launch `count` equal instances, each taking `takes` of the singles.

    Attributes:
        takes: (wanted, requests that one instance takes).
    """

    offer: Offer
    count: int
    takes: tuple[tuple[Wanted, int], ...]


def _best_step(singles: list[Wanted], queue: Queue) -> Step | None:
    """Return the launch that serves most for its money, or `None` when nothing can be had."""
    best: tuple[tuple[object, ...], Step] | None = None
    waiting = [want for want in singles if want.left]
    if not waiting:
        return None
    for offer in queue.market.offers:
        if queue.market.room_for(offer, 1) < 1:
            continue
        takes = _fill_one(offer, waiting, queue)
        if not takes:
            continue
        # One request that needs no GPU counts little, so that GPUs decide wherever they occur.
        served = sum(max(gpus(w.unmet.demand.shape), 1e-3) * n for w, n in takes)
        order = (offer.rank, offer.usd_per_hour / served, offer.usd_per_hour, offer.offer_id)
        if best is None or order < best[0]:
            same = min(want.left // n for want, n in takes)
            best = order, Step(offer, queue.market.room_for(offer, max(1, same)), takes)
    return best[1] if best else None


def _fill_one(offer: Offer, waiting: list[Wanted], queue: Queue) -> tuple[tuple[Wanted, int], ...]:
    """Return what one empty node of the offer would take."""
    room = Room(queue.axis)
    room.add(offer.shape, rented_labels(offer), is_cloud=True)
    takes = []
    for want in waiting:
        placed = room.take(want.unmet.demand, want.left)
        if placed.count:
            takes.append((want, placed.count))
    return tuple(takes)


def _apply(
    step: Step, count: int, snapshot: Snapshot, params: PolicyParams, queue: Queue
) -> Iterator[Launch]:
    queue.market.take(step.offer, count)
    for want, each in step.takes:
        want.left -= each * count
    first, each = step.takes[0]
    reason = _reason(first.unmet, step.offer, each, snapshot, params, queue)
    return (Launch(offer=step.offer, reason=reason) for _ in range(count))


def _launch_gang(
    want: Wanted,
    gang: Gang,
    snapshot: Snapshot,
    params: PolicyParams,
    queue: Queue,
    budget: int,
) -> list[Launch]:
    """Return launches that hold the gang whole, or none."""
    best: tuple[tuple[object, ...], Offer, int] | None = None
    for offer in queue.market.offers:
        count = _nodes_for(gang, offer, queue)
        if count is None or count > budget or queue.market.room_for(offer, count) < count:
            continue
        order = (offer.rank, offer.usd_per_hour * count, offer.offer_id)
        if best is None or order < best[0]:
            best = order, offer, count
    if best is None:
        return []
    _, offer, count = best
    queue.market.take(offer, count)
    want.left = 0
    reason = _reason(want.unmet, offer, 1, snapshot, params, queue)
    return [Launch(offer=offer, reason=reason)] * count


def _nodes_for(gang: Gang, offer: Offer, queue: Queue) -> int | None:
    """Return how many empty nodes of the offer hold the gang whole; `None` if none do."""
    count = sum(bundle.count for bundle in gang.bundles)
    low, high = 1, count
    if not _holds(gang, offer, high, queue):
        return None
    while low < high:
        middle = (low + high) // 2
        if _holds(gang, offer, middle, queue):
            high = middle
        else:
            low = middle + 1
    return low


def _holds(gang: Gang, offer: Offer, count: int, queue: Queue) -> bool:
    room = Room(queue.axis)
    room.add(offer.shape, rented_labels(offer), is_cloud=True, count=count)
    return not room.take_bundles(gang, Placed())


def _reason(
    unmet: Unmet,
    offer: Offer,
    takes: int,
    snapshot: Snapshot,
    params: PolicyParams,
    queue: Queue,
) -> Reason:
    demand: Demand = unmet.demand
    what = "a gang" if unmet.gang else plural(unmet.count, "request")
    waited_s = demand.waiting_s or 0.0
    if queue.breach_code == "queue_wait" and unmet.is_due:
        limit = f"over the limit of {params.max_wait_s:.0f} s"
    else:
        limit = f"and the queue is over {params.pending_gpus or 0:g} GPUs"
    return Reason(
        code=queue.breach_code,
        message=(
            f"{what} for {shape_text(demand.shape)} ({describe(demand.selectors)}) waited "
            f"{waited_s:.0f} s, {limit}; {offer.offer_id} at ${offer.usd_per_hour:.2f}/h "
            f"takes {'it' if unmet.gang else takes}"
        ),
        facts={
            "waiting_s": round(waited_s, 3),
            "max_wait_s": params.max_wait_s,
            "request_count": unmet.count,
            "unmet_gpu_count": sum(u.gpu_count for u in queue.unmet if u.is_rentable),
            "takes_count": takes,
            "usd_per_hour": offer.usd_per_hour,
            "breach_s": round(snapshot.now_s - (queue.breach_since_s or snapshot.now_s), 3),
        },
    )
