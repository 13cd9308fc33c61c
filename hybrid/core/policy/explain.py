"""Words for people: why work waits, what happens to it, and the plan in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid.core.labels import describe, sites
from hybrid.core.models import Demand, InstanceState, NodeStatus, Reason
from hybrid.core.policy.market import Refusal
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import (
    Action,
    Drain,
    Finding,
    Launch,
    Move,
    Snapshot,
    Start,
    Suspend,
    Terminate,
)
from hybrid.core.policy.queue import Met, Queue, Unmet
from hybrid.core.policy.room import fits
from hybrid.core.policy.words import age_text, plural, shape_text

RAMP = Refusal("ramp", "this plan launches as many as one tick may; the next one goes on", 4)

_MET = ("capacity_free", "capacity_coming")


def finding_for_met(met: Met) -> Finding:
    """Return what happens to work that free or coming capacity takes."""
    now, coming = met.placed.now, met.placed.coming
    code, message = "capacity_coming", "nodes that are joining will take it"
    if not coming:
        code, message = "capacity_free", "free nodes will take it; Ray is placing it"
    elif now:
        message = f"free nodes will take {now} of it, and nodes that are joining {coming}"
    return Finding(
        shape=met.demand.shape,
        count=1 if met.gang else met.placed.count,
        gang_id=met.gang.gang_id if met.gang else "",
        where=describe(met.demand.selectors),
        waiting_s=met.demand.waiting_s,
        reason=Reason(code=code, message=message),
    )


def finding_for_unmet(
    unmet: Unmet, left: int, refusal: Refusal | None, *, is_for_ever: bool
) -> Iterator[Finding]:
    """Yield why unmet work waits: what is launched for it, and why the rest gets nothing.

    Args:
        unmet: The work.
        left: How many of its requests this plan launches nothing for.
        refusal: Why those get nothing.
        is_for_ever: They never will, as things are configured.
    """
    if left < unmet.count:
        launching = Refusal("launching", "instances are being launched for it", 0)
        yield _finding(unmet, unmet.count - left, launching)
    if left and refusal is not None:
        yield _finding(unmet, left, refusal, is_for_ever=is_for_ever)


def refusal_of(
    unmet: Unmet, snapshot: Snapshot, params: PolicyParams, queue: Queue
) -> tuple[Refusal, bool]:
    """Return why unmet work gets nothing in this plan, and whether that is for ever.

    Args:
        unmet: The work.
        snapshot: What was seen.
        params: Thresholds.
        queue: The sorted queue, with the market after this plan's launches.
    """
    if not unmet.is_rentable:
        return _not_rentable(unmet, snapshot, queue)
    mode = snapshot.mode
    if mode.is_closing:
        return Refusal("closing", "the cluster is going down", 0), False
    if mode.is_out_paused:
        message = f"launches are paused by {mode.owner or 'an operator'}; `hybrid resume out`"
        return Refusal("paused", message, 0), False
    if not queue.may_rent(unmet):
        waited = age_text(unmet.demand.waiting_s)
        message = f"waited {waited} of the {params.max_wait_s:.0f} s that home gets first"
        return Refusal("within_limit", message, 0), False
    if not queue.is_breach_stable:
        since_s = snapshot.now_s if queue.breach_since_s is None else queue.breach_since_s
        message = (
            f"the queue limit has been broken for {snapshot.now_s - since_s:.0f} s; money is "
            f"spent after {params.stabilisation_s:.0f} s"
        )
        return Refusal("stabilising", message, 0), False
    return _nothing_left(unmet, queue)


def _nothing_left(unmet: Unmet, queue: Queue) -> tuple[Refusal, bool]:
    """Return why no instance can be launched for single requests."""
    market = queue.market
    offers = tuple(market.holding(unmet.demand))
    refusals = [why for offer in offers if (why := market.why_not_one(offer)) is not None]
    if len(refusals) < len(offers):
        return RAMP, False
    is_for_ever = not any(market.could_ever(offer, 1) for offer in offers)
    best = max(refusals, key=lambda r: (r.weight, r.message))
    return best, is_for_ever and not queue.home.has_space(unmet.demand)


def _not_rentable(unmet: Unmet, snapshot: Snapshot, queue: Queue) -> tuple[Refusal, bool]:
    """Return why work that no known offer holds waits."""
    refusal, is_for_ever = _unfit(unmet, snapshot, queue)
    if snapshot.unread and "cloud" in sites(unmet.demand.selectors):
        source = snapshot.unread[0]
        message = f"what {source.name} offers is not known: {source.problem}"
        return Refusal("offers_unknown", message, 0), False
    return refusal, is_for_ever


def _unfit(unmet: Unmet, snapshot: Snapshot, queue: Queue) -> tuple[Refusal, bool]:
    where = describe(unmet.demand.selectors)
    for unit in unmet.units:
        if not queue.home.has_space(unit) and not any(queue.market.holding(unit)):
            return Refusal("never_fits", _never_text(unit, snapshot), 0), True
    if unmet.pieces and queue.home.copy().take_gang(unmet.pieces) is None:
        message = (
            "the nodes that are there could not hold all of its bundles at once even if they were "
            "free, and no single offer holds each of them: make the gang smaller, or add hosts or "
            "a cloud pool that can hold it"
        )
        return Refusal("gang_never_fits", message, 0), True
    if "cloud" in sites(unmet.demand.selectors):
        message = f"no offer can hold it ({where}), and the nodes that can are busy"
    else:
        message = f"only on-prem nodes may run it ({where}), and they are busy"
    return Refusal("onprem_busy", message, 0), False


def _never_text(unit: Demand, snapshot: Snapshot) -> str:
    """Return what stands in the way of work that nothing can hold, and the way out."""
    wholes = [node.total for node in snapshot.nodes if node.status is not NodeStatus.DEAD]
    wholes += [host.shape for host in snapshot.hosts]
    wholes += [offer.shape for offer in snapshot.offers]
    what = shape_text(unit.shape)
    if any(fits(unit.shape, whole) for whole in wholes):
        return (
            f"no node and no offer that can hold {what} has the labels that are asked for "
            f"({describe(unit.selectors)}): correct the labels, or add a host or a cloud pool "
            f"that has them"
        )
    most = {
        name: max((whole.get(name, 0.0) for whole in wholes), default=0.0) for name in unit.shape
    }
    missing = [name for name, amount in unit.shape.items() if amount and not most[name]]
    if missing:
        names = ", ".join(missing)
        return (
            f"no node and no offer has any {names}: ask for something else, or add a host or a "
            f"cloud pool that has it"
        )
    short = {name: most[name] for name, amount in unit.shape.items() if amount > most[name]}
    largest = f", the largest of all has {shape_text(short)}" if short else ""
    return (
        f"no node and no offer can hold {what}{largest}: make the request smaller, or add a host "
        f"or a cloud pool that can hold it"
    )


def _finding(unmet: Unmet, count: int, why: Refusal, *, is_for_ever: bool = False) -> Finding:
    return Finding(
        shape=unmet.demand.shape,
        count=count,
        gang_id=unmet.gang.gang_id if unmet.gang else "",
        where=describe(unmet.demand.selectors),
        waiting_s=unmet.demand.waiting_s,
        is_for_ever=is_for_ever,
        reason=Reason(code=why.code, message=why.message),
    )


def summarise(snapshot: Snapshot, actions: Sequence[Action], findings: Sequence[Finding]) -> str:
    """Return the plan in one sentence."""
    launches = [action for action in actions if isinstance(action, Launch)]
    leaving = [action for action in actions if isinstance(action, Drain | Terminate)]
    if launches:
        usd = sum(launch.offer.usd_per_hour for launch in launches)
        return (
            f"Renting {plural(len(launches), 'node')} (${usd:.2f}/h): {launches[0].reason.message}."
        )
    if leaving:
        is_drain = isinstance(leaving[0], Drain)
        same = [action for action in leaving if isinstance(action, Drain) == is_drain]
        what = "Draining" if is_drain else "Ending"
        return f"{what} {plural(len(same), 'rented node')}: {leaving[0].reason.message}."
    if actions:
        return _about_jobs(actions)
    return _quiet(snapshot, findings)


def _about_jobs(actions: Sequence[Action]) -> str:
    """Return what happens to jobs when no node comes or goes."""
    counts = (
        ("started", sum(isinstance(action, Start) for action in actions)),
        ("suspended", sum(isinstance(action, Suspend) for action in actions)),
        ("moved", sum(isinstance(action, Move) for action in actions)),
    )
    said = [f"{plural(count, 'job')} {verb}" for verb, count in counts if count]
    return f"{', '.join(said)}: {actions[0].reason.message}."


def _quiet(snapshot: Snapshot, findings: Sequence[Finding]) -> str:
    """Return what is so when nothing is done."""
    rented = sum(instance.state is not InstanceState.LOST for instance in snapshot.instances)
    start = f"{plural(rented, 'node')} rented; " if rented else ""
    stuck = [finding for finding in findings if finding.reason.code not in _MET]
    if stuck:
        most = max(stuck, key=lambda f: (f.count, f.waiting_s or 0.0, f.reason.message))
        waiting = sum(finding.count for finding in stuck)
        return f"{start}{plural(waiting, 'request')} waiting: {most.reason.message}."
    if findings:
        waiting = sum(finding.count for finding in findings)
        return f"{start}{plural(waiting, 'request')} waiting, and nodes with room for all of it."
    return f"{start}nothing waits." if rented else "Everything runs at home; nothing waits."
