"""Which instances to launch for the unmet demand, and why the rest waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.core.labels import describe
from hybrid.core.models import Gang, Offer, Reason
from hybrid.core.policy.explain import RAMP, finding_for_met, finding_for_unmet, refusal_of
from hybrid.core.policy.market import Refusal
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Finding, Launch, Snapshot
from hybrid.core.policy.queue import Queue, Unmet
from hybrid.core.policy.room import Room, gpus, units
from hybrid.core.policy.words import age_text, number, plural, shape_text


@dataclass
class Wanted:
    """Unmet demand that may be rented for now.

    Attributes:
        left: How much of it is still uncovered.
        refusal: Why a gang got nothing.
        is_for_ever: It would get nothing either if nothing else were rented.
    """

    unmet: Unmet
    left: int
    refusal: Refusal | None = None
    is_for_ever: bool = False


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
    findings = [finding_for_met(met) for met in queue.met]
    want_by_id = {id(want.unmet): want for want in wanted}
    for unmet in queue.unmet:
        want = want_by_id.get(id(unmet)) or Wanted(unmet, unmet.count)
        refusal, is_for_ever = want.refusal, want.is_for_ever
        if want.left and refusal is None:
            refusal, is_for_ever = refusal_of(unmet, snapshot, params, queue)
        findings += finding_for_unmet(unmet, want.left, refusal, is_for_ever=is_for_ever)
    return launches, findings


def _may_rent(unmet: Unmet, snapshot: Snapshot, queue: Queue) -> bool:
    mode = snapshot.mode
    if not queue.is_breach_stable or mode.is_out_paused or mode.is_closing:
        return False
    return queue.may_rent(unmet)


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
            best = order, Step(offer, queue.market.room_for(offer, same), takes)
    return best[1] if best else None


def _fill_one(offer: Offer, waiting: list[Wanted], queue: Queue) -> tuple[tuple[Wanted, int], ...]:
    """Return what one empty node of the offer would take."""
    room = Room(queue.axis)
    room.add(offer.shape, queue.market.labels[offer.offer_id], is_cloud=True)
    takes = []
    for want in waiting:
        if room.is_full:
            break
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
    """Return launches that hold the gang whole, or none and note why."""
    best: tuple[tuple[object, ...], Offer, int] | None = None
    refusals = []
    want.is_for_ever = queue.home.copy().take_gang(gang) is None
    for offer in queue.market.holding(*units(gang)):
        count = _nodes_for(gang, offer, queue)
        if count <= params.launches_per_tick and queue.market.could_ever(offer, count):
            want.is_for_ever = False
        refusal = _gang_refusal(offer, count, params, queue)
        if refusal is not None:
            refusals.append(refusal)
            continue
        order = (offer.rank, offer.usd_per_hour * count, offer.offer_id)
        if best is None or order < best[0]:
            best = order, offer, count
    if best is None:
        want.refusal = max(refusals, key=lambda r: (r.weight, r.message))
        return []
    _, offer, count = best
    if count > budget:
        # It comes first in the next tick; a dearer offer would only be quicker by that tick.
        want.refusal = RAMP
        return []
    queue.market.take(offer, count)
    want.left = 0
    reason = _reason(want.unmet, offer, count, snapshot, params, queue)
    return [Launch(offer=offer, reason=reason)] * count


def _gang_refusal(offer: Offer, count: int, params: PolicyParams, queue: Queue) -> Refusal | None:
    """Return why `count` instances of the offer cannot be had at once, or `None`."""
    if count > params.launches_per_tick:
        message = (
            f"the gang needs {count} of {offer.offer_id} at once, and one tick launches at most "
            f"{params.launches_per_tick}; raise burst.launches_per_tick to {count}"
        )
        return Refusal("gang_too_large", message, 1)
    if queue.market.room_for(offer, count, is_gang=True) < count:
        return queue.market.refusal(offer, count)
    return None


def _nodes_for(gang: Gang, offer: Offer, queue: Queue) -> int:
    """Return how many empty nodes of an offer that holds each bundle hold the gang whole."""
    low, high = 1, sum(bundle.count for bundle in gang.bundles)
    while low < high:
        middle = (low + high) // 2
        if _holds(gang, offer, middle, queue):
            high = middle
        else:
            low = middle + 1
    return low


def _holds(gang: Gang, offer: Offer, count: int, queue: Queue) -> bool:
    room = Room(queue.axis)
    labels = queue.market.labels[offer.offer_id]
    room.add(offer.shape, labels, is_cloud=True, count=count)
    return room.take_gang(gang) is not None


def _reason(
    unmet: Unmet,
    offer: Offer,
    count: int,
    snapshot: Snapshot,
    params: PolicyParams,
    queue: Queue,
) -> Reason:
    """Return why an offer is launched.

    Args:
        unmet: The work that asks for it first.
        offer: What is launched.
        count: For a gang, its instances; otherwise the requests one instance takes.
        snapshot: What was seen.
        params: Thresholds.
        queue: The sorted queue.
    """
    demand = unmet.demand
    what = "a gang" if unmet.gang else plural(unmet.count, "request")
    if unmet.is_due:
        code, limit = "queue_wait", f"over the limit of {params.max_wait_s:.0f} s"
    else:
        pending = number(params.pending_gpus or 0.0)
        code, limit = "queue_gpus", f"and the queue is over its limit of {pending} GPUs"
    took = f"one {offer.offer_id} takes {count}"
    if unmet.gang:
        verb = "takes" if count == 1 else "take"
        took = f"{plural(count, 'instance')} of {offer.offer_id} {verb} it"
    breach_s = 0.0 if queue.breach_since_s is None else snapshot.now_s - queue.breach_since_s
    facts: dict[str, float | int | str] = {
        "max_wait_s": params.max_wait_s,
        "request_count": unmet.count,
        "unmet_gpu_count": sum(u.gpu_count for u in queue.unmet if u.is_rentable),
        "takes_count": 1 if unmet.gang else count,
        "usd_per_hour": offer.usd_per_hour,
        "breach_s": round(breach_s, 3),
    }
    if demand.waiting_s is not None:
        facts["waiting_s"] = round(demand.waiting_s, 3)
    if params.pending_gpus is not None:
        facts["pending_gpus"] = params.pending_gpus
    return Reason(
        code=code,
        message=(
            f"{what} for {shape_text(demand.shape)} ({describe(demand.selectors)}) waited "
            f"{age_text(demand.waiting_s)}, {limit}; {took}, at ${offer.usd_per_hour:.2f}/h each"
        ),
        facts=facts,
    )
