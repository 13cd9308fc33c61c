"""Words for people: why work waits, what happens to it, and the plan in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid.core.labels import describe
from hybrid.core.models import InstanceState, Reason, Shape
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Action, Drain, Finding, Launch, Snapshot
from hybrid.core.policy.queue import Met, Queue, Unmet
from hybrid.core.policy.room import units


def plural(count: float, word: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{count:g} {word}{'' if count == 1 else 's'}"


def shape_text(shape: Shape) -> str:
    """Return a shape as people write it: `4 GPU, 8 CPU, 2 GiB`."""
    parts = []
    for name in sorted(shape, key=lambda n: (n != "GPU", n != "CPU", n)):
        amount = shape[name]
        if name in ("memory", "object_store_memory"):
            parts.append(f"{amount / 2**30:.3g} GiB {name}")
        elif amount:
            parts.append(f"{amount:g} {name}")
    return ", ".join(parts) or "nothing"


def finding_for_met(met: Met) -> Finding:
    """Return what happens to work that free or coming capacity takes."""
    now, coming = met.placed.now, met.placed.coming
    if coming and not now:
        reason = Reason(code="capacity_coming", message="nodes that are joining will take it")
    elif coming:
        message = f"{now} fit free nodes now, {coming} fit nodes that are joining"
        reason = Reason(code="capacity_coming", message=message)
    else:
        reason = Reason(code="capacity_free", message="free nodes will take it; Ray is placing it")
    return Finding(
        shape=met.demand.shape,
        count=1 if met.gang else met.placed.count,
        gang_id=met.gang.gang_id if met.gang else "",
        waiting_s=met.demand.waiting_s,
        reason=reason,
    )


def finding_for_unmet(
    unmet: Unmet, left: int, snapshot: Snapshot, params: PolicyParams, queue: Queue
) -> Iterator[Finding]:
    """Yield why unmet work waits: what is launched for it, and why the rest gets nothing.

    Args:
        unmet: The work.
        left: How many of its requests this plan launches nothing for.
        snapshot: What was seen.
        params: Thresholds.
        queue: The sorted queue, with the market after this plan's launches.
    """
    if left < unmet.count:
        message = "instances are being launched for it"
        yield _finding(unmet, unmet.count - left, Reason(code="launching", message=message))
    if left:
        reason, is_for_ever = _why_not(unmet, snapshot, params, queue)
        yield _finding(unmet, left, reason, is_for_ever=is_for_ever)


def _finding(unmet: Unmet, count: int, reason: Reason, *, is_for_ever: bool = False) -> Finding:
    return Finding(
        shape=unmet.demand.shape,
        count=count,
        gang_id=unmet.gang.gang_id if unmet.gang else "",
        waiting_s=unmet.demand.waiting_s,
        is_for_ever=is_for_ever,
        reason=reason,
    )


def _why_not(
    unmet: Unmet, snapshot: Snapshot, params: PolicyParams, queue: Queue
) -> tuple[Reason, bool]:
    if not unmet.is_rentable:
        return _why_not_rentable(unmet, queue)
    mode = snapshot.mode
    if mode.is_closing:
        return Reason(code="closing", message="the cluster is going down"), False
    if mode.is_out_paused:
        message = f"launches are paused by {mode.owner or 'an operator'}; `hybrid resume out`"
        return Reason(code="paused", message=message), False
    waiting_s = unmet.demand.waiting_s
    if not queue.breach_code or not (unmet.is_due or queue.breach_code == "queue_gpus"):
        waited = "for an unknown time" if waiting_s is None else f"{waiting_s:.0f} s"
        message = f"waited {waited} of the {params.max_wait_s:.0f} s that home gets first"
        return Reason(code="within_limit", message=message), False
    if not queue.is_breach_stable:
        held_s = snapshot.now_s - (queue.breach_since_s or snapshot.now_s)
        message = (
            f"the queue limit has been broken for {held_s:.0f} s; money is spent "
            f"after {params.stabilisation_s:.0f} s"
        )
        return Reason(code="stabilising", message=message), False
    return _why_none_left(unmet, queue), False


def _why_none_left(unmet: Unmet, queue: Queue) -> Reason:
    pieces = units(unmet.gang) if unmet.gang else (unmet.demand,)
    offers = {o.offer_id: o for piece in pieces for o in queue.market.holding(piece)}
    refusals = [
        queue.market.refusal(offer)
        for offer in offers.values()
        if queue.market.room_for(offer, 1) < 1
    ]
    if refusals and len(refusals) == len(offers):
        best = max(refusals, key=lambda r: (r.weight, r.message))
        return Reason(code=best.code, message=best.message)
    if unmet.gang:
        message = "no single offer can take the whole gang under its stock and the caps"
        return Reason(code="gang_too_large", message=message)
    message = "this plan launches as many as one tick may; the next tick goes on"
    return Reason(code="ramp", message=message)


def _why_not_rentable(unmet: Unmet, queue: Queue) -> tuple[Reason, bool]:
    pieces = units(unmet.gang) if unmet.gang else (unmet.demand,)
    where = describe(unmet.demand.selectors)
    for piece in pieces:
        if not queue.home.has_space(piece):
            message = (
                f"no node and no offer can hold {shape_text(piece.shape)} ({where}): make the "
                f"request smaller, or add a host or a cloud pool that can hold it"
            )
            return Reason(code="never_fits", message=message), True
    message = f"only on-prem nodes may run it ({where}), and they are busy"
    return Reason(code="onprem_busy", message=message), False


def summarise(
    snapshot: Snapshot, params: PolicyParams, queue: Queue, actions: Sequence[Action]
) -> str:
    """Return the plan in one sentence."""
    launches = [a for a in actions if isinstance(a, Launch)]
    leaving = [a for a in actions if not isinstance(a, Launch)]
    if launches:
        usd = sum(launch.offer.usd_per_hour for launch in launches)
        return (
            f"Renting {plural(len(launches), 'node')} (${usd:.2f}/h): {launches[0].reason.message}."
        )
    if leaving:
        what = "Draining" if isinstance(leaving[0], Drain) else "Ending"
        return f"{what} {plural(len(leaving), 'rented node')}: {leaving[0].reason.message}."
    rented = [i for i in snapshot.instances if i.state is not InstanceState.LOST]
    stuck = [u for u in queue.unmet if not u.is_rentable]
    waiting = sum(u.count for u in queue.unmet)
    if rented:
        return f"{plural(len(rented), 'node')} rented; {plural(waiting, 'request')} waiting."
    if waiting and len(stuck) == len(queue.unmet):
        return f"{plural(waiting, 'request')} waiting that no cloud offer may take."
    if waiting:
        return (
            f"{plural(waiting, 'request')} waiting, within the limit of {params.max_wait_s:.0f} s."
        )
    return "Everything runs at home; nothing waits."
