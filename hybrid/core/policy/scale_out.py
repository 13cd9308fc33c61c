"""Which instances to launch for the unmet demand, and why the rest waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hybrid.core.labels import describe
from hybrid.core.models import Offer, Reason
from hybrid.core.policy.explain import RAMP, finding_for_met, finding_for_unmet, refusal_of
from hybrid.core.policy.market import Refusal
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.pieces import Key, Pieces, gpus
from hybrid.core.policy.plan import Finding, Launch, Snapshot
from hybrid.core.policy.queue import Queue, Unmet
from hybrid.core.policy.room import Room
from hybrid.core.policy.words import age_text, number, plural, shape_text


def scale_out(
    snapshot: Snapshot, params: PolicyParams, queue: Queue, *, launched: int = 0
) -> tuple[list[Launch], list[Finding]]:
    """Return launches for what broke the queue limit, and a finding for all that waits.

    Args:
        snapshot: What was seen.
        params: Thresholds.
        queue: Its waiting work, and a market from which earlier launches are taken.
        launched: How many those were: they count for the ramp.
    """
    wanted = [Wanted(u, u.count) for u in queue.unmet if _may_rent(u, snapshot, queue)]
    buyer = Buyer(snapshot, params, queue, launched)
    for want in wanted:
        if want.unmet.pieces is not None:
            buyer.launch_gang(want, want.unmet.pieces)
    buyer.launch_singles([want for want in wanted if want.unmet.pieces is None])
    findings = [finding_for_met(met) for met in queue.met]
    want_by_id = {id(want.unmet): want for want in wanted}
    for unmet in queue.unmet:
        want = want_by_id.get(id(unmet)) or Wanted(unmet, unmet.count)
        refusal, is_for_ever = want.refusal, want.is_for_ever
        if want.left and refusal is None:
            refusal, is_for_ever = refusal_of(unmet, snapshot, params, queue)
        findings += finding_for_unmet(unmet, want.left, refusal, is_for_ever=is_for_ever)
    return buyer.launches, findings


def _may_rent(unmet: Unmet, snapshot: Snapshot, queue: Queue) -> bool:
    mode = snapshot.mode
    if not queue.is_breach_stable or mode.is_out_paused or mode.is_closing:
        return False
    return queue.may_rent(unmet)


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


@dataclass(frozen=True)
class Step:
    """Launch `count` equal instances, each taking `takes` of the singles.

    Attributes:
        takes: (wanted, requests that one instance takes).
    """

    offer: Offer
    count: int
    takes: tuple[tuple[Wanted, int], ...]


@dataclass
class Buyer:
    """Chooses launches, one gang or one step at a time, while the tick's limit allows.

    Attributes:
        launched: Launches of this plan for other work.
    """

    snapshot: Snapshot
    params: PolicyParams
    queue: Queue
    launched: int = 0
    launches: list[Launch] = field(default_factory=list)
    _counts: dict[tuple[str, Key], int] = field(default_factory=dict)

    @property
    def budget(self) -> int:
        """How many more instances this plan may launch."""
        return self.params.launches_per_tick - self.launched - len(self.launches)

    # --- single requests ------------------------------------------------------------------

    def launch_singles(self, singles: list[Wanted]) -> None:
        """Launch for single requests what serves most for its money, until nothing can be had."""
        while self.budget > 0:
            step = self._best_step([want for want in singles if want.left])
            if step is None:
                return
            count = min(step.count, self.budget)
            self.queue.market.take(step.offer, count)
            for want, each in step.takes:
                want.left -= each * count
            first, each = step.takes[0]
            reason = self._reason(first.unmet, step.offer, each)
            self.launches += [Launch(offer=step.offer, reason=reason)] * count

    def _best_step(self, waiting: list[Wanted]) -> Step | None:
        market = self.queue.market
        best: tuple[tuple[object, ...], Step] | None = None
        for offer in market.offers if waiting else ():
            if market.room_for(offer, 1) < 1:
                continue
            takes = self._fill_one(offer, waiting)
            if not takes:
                continue
            # One request that needs no GPU counts little, so that GPUs decide wherever they occur.
            served = sum(max(gpus(w.unmet.demand.shape), 1e-3) * n for w, n in takes)
            order = (offer.rank, offer.usd_per_hour / served, offer.usd_per_hour, offer.offer_id)
            if best is None or order < best[0]:
                same = min(want.left // n for want, n in takes)
                best = order, Step(offer, market.room_for(offer, same), takes)
        return best[1] if best else None

    def _fill_one(self, offer: Offer, waiting: list[Wanted]) -> tuple[tuple[Wanted, int], ...]:
        """Return what one empty node of the offer would take."""
        room = self._nodes(offer, 1)
        takes = []
        for want in waiting:
            if room.is_full:
                break
            placed = room.take(want.unmet.demand, want.left)
            if placed.count:
                takes.append((want, placed.count))
        return tuple(takes)

    def _nodes(self, offer: Offer, count: int) -> Room:
        room = Room(self.queue.axis)
        labels = self.queue.market.labels[offer.offer_id]
        room.add(offer.shape, labels, is_cloud=True, count=count)
        return room

    # --- gangs ----------------------------------------------------------------------------

    def launch_gang(self, want: Wanted, gang: Pieces) -> None:
        """Launch what holds the gang whole at the least cost, or note why nothing can."""
        market = self.queue.market
        counts = [(offer, self._count(gang, offer)) for offer in market.holding(*gang.units)]
        refusals = []
        best: tuple[tuple[object, ...], Offer, int] | None = None
        for offer, count in counts:
            refusal = self._gang_refusal(offer, count)
            if refusal is not None:
                refusals.append(refusal)
                continue
            order = (offer.rank, offer.usd_per_hour * count, offer.offer_id)
            if best is None or order < best[0]:
                best = order, offer, count
        if best is None:
            want.refusal = max(refusals, key=lambda r: (r.weight, r.message))
            want.is_for_ever = self._is_for_ever(gang, counts)
            return
        _, offer, count = best
        if count > self.budget:
            # It comes first in the next tick; a dearer offer would only be quicker by that tick.
            want.refusal = RAMP
            return
        market.take(offer, count)
        want.left = 0
        reason = self._reason(want.unmet, offer, count)
        number = 0 if count == 1 else 1 + max((one.gang for one in self.launches), default=0)
        self.launches += [Launch(offer=offer, reason=reason, gang=number)] * count

    def _gang_refusal(self, offer: Offer, count: int) -> Refusal | None:
        """Return why `count` instances of the offer cannot be had at once, or `None`."""
        limit = self.params.launches_per_tick
        if count > limit:
            message = (
                f"the gang needs {count} of {offer.offer_id} at once, and one tick launches at "
                f"most {limit}; raise burst.launches_per_tick to {count}"
            )
            return Refusal("gang_too_large", message, 1)
        if self.queue.market.room_for(offer, count, is_gang=True) < count:
            return self.queue.market.refusal(offer, count)
        return None

    def _is_for_ever(self, gang: Pieces, counts: list[tuple[Offer, int]]) -> bool:
        """Return whether neither home nor any offer could hold the gang, whatever else is so."""
        limit = self.params.launches_per_tick
        market = self.queue.market
        if any(count <= limit and market.could_ever(offer, count) for offer, count in counts):
            return False
        return self.queue.home.copy().take_gang(gang) is None

    def _count(self, gang: Pieces, offer: Offer) -> int:
        """Return how many empty nodes of an offer that holds each unit hold the gang whole."""
        key = (offer.offer_id, gang.key)
        if key not in self._counts:
            self._counts[key] = self._count_nodes(gang, offer)
        return self._counts[key]

    def _count_nodes(self, gang: Pieces, offer: Offer) -> int:
        low, high = 1, sum(unit.count for unit in gang.units)
        if len(gang.units) == 1 and not gang.is_apart:
            each = self._nodes(offer, 1).take(gang.units[0], high).count
            return -(-high // each)
        while low < high:
            middle = (low + high) // 2
            if self._nodes(offer, middle).take_gang(gang) is not None:
                high = middle
            else:
                low = middle + 1
        return low

    # --- why ------------------------------------------------------------------------------

    def _reason(self, unmet: Unmet, offer: Offer, count: int) -> Reason:
        """Return why an offer is launched.

        Args:
            unmet: The work that asks for it first.
            offer: What is launched.
            count: For a gang, its instances; otherwise the requests one instance takes.
        """
        demand, params, queue = unmet.demand, self.params, self.queue
        since_s = self.snapshot.now_s if queue.breach_since_s is None else queue.breach_since_s
        facts: dict[str, float | int | str] = {
            "max_wait_s": params.max_wait_s,
            "request_count": unmet.count,
            "unmet_gpu_count": sum(u.gpu_count for u in queue.unmet if u.is_rentable),
            "takes_count": 1 if unmet.pieces else count,
            "usd_per_hour": offer.usd_per_hour,
            "breach_s": round(self.snapshot.now_s - since_s, 3),
        }
        if demand.waiting_s is not None:
            facts["waiting_s"] = round(demand.waiting_s, 3)
        if params.pending_gpus is not None:
            facts["pending_gpus"] = params.pending_gpus
        code = "queue_wait" if unmet.is_due else "queue_gpus"
        if demand.why_now:
            code = "slo_breach"
        return Reason(code=code, message=" ".join(self._words(unmet, offer, count)), facts=facts)

    def _words(self, unmet: Unmet, offer: Offer, count: int) -> Iterator[str]:
        demand, params = unmet.demand, self.params
        yield "a gang" if unmet.pieces else plural(unmet.count, "request")
        yield f"for {shape_text(demand.shape)} ({describe(demand.selectors)})"
        waited = f"waited {age_text(demand.waiting_s)}"
        if demand.why_now:
            yield f"cannot wait: {demand.why_now};"
        elif unmet.is_due:
            yield f"{waited}, over the limit of {params.max_wait_s:.0f} s;"
        else:
            pending = number(params.pending_gpus or 0.0)
            yield f"{waited}, and the queue is over its limit of {pending} GPUs;"
        if unmet.pieces:
            verb = "takes" if count == 1 else "take"
            yield f"{plural(count, 'instance')} of {offer.offer_id} {verb} it,"
        else:
            yield f"one {offer.offer_id} takes {count},"
        yield f"at ${offer.usd_per_hour:.2f}/h each"
