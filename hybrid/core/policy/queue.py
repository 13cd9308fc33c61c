"""What waits, what free or coming capacity will take it, and whether the queue limit is broken."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hybrid.core.models import Demand, Gang, InstanceState, NodeStatus
from hybrid.core.policy.jobs.rent import JOB_WAITS
from hybrid.core.policy.market import Market, is_coming, rented_labels
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.pieces import Pieces, gpus, selector_key, total
from hybrid.core.policy.plan import Snapshot
from hybrid.core.policy.room import Axis, Placed, Room

_LEAVING = (InstanceState.DRAINING, InstanceState.TERMINATING, InstanceState.LOST)


@dataclass(frozen=True)
class Unmet:
    """Requests of one kind, or one gang, that no free or coming capacity takes.

    Attributes:
        demand: One request; for a gang, the sum of its bundles.
        count: How many requests (1 for a gang).
        pieces: What of a gang must fit on one node each.
        is_rentable: Some offer could hold it, sold out or not; a gang needs one that could
            hold every bundle, for it is rented for as a whole.
        is_due: It broke the queue limit by itself.
    """

    demand: Demand
    count: int
    gang: Gang | None
    pieces: Pieces | None
    is_rentable: bool
    is_due: bool

    @property
    def units(self) -> tuple[Demand, ...]:
        """What must fit on one node each."""
        return self.pieces.units if self.pieces else (self.demand,)

    @property
    def gpu_count(self) -> float:
        """GPUs of all of it."""
        return gpus(self.demand.shape) * self.count


@dataclass(frozen=True)
class Met:
    """Requests that free or coming capacity takes."""

    demand: Demand
    gang: Gang | None
    pieces: Pieces | None
    placed: Placed

    @property
    def units(self) -> tuple[Demand, ...]:
        """What must fit on one node each."""
        return self.pieces.units if self.pieces else (self.demand,)


@dataclass(frozen=True)
class Queue:
    """The waiting work of a snapshot, sorted into met and unmet.

    Attributes:
        breach_since_s: When the limit was first found broken; `None` when it holds.
        is_breach_stable: It has been broken for long enough to spend money.
        breach_code: `queue_wait`, `queue_gpus`, `slo_breach`, or `""`.
        is_over_gpus: More GPUs wait than may, whatever `breach_code` says.
    """

    snapshot: Snapshot
    axis: Axis
    market: Market
    met: tuple[Met, ...]
    unmet: tuple[Unmet, ...]
    breach_since_s: float | None
    is_breach_stable: bool
    breach_code: str
    is_over_gpus: bool

    @classmethod
    def of(cls, snapshot: Snapshot, params: PolicyParams) -> Queue:
        """Return the queue of a snapshot."""
        gangs = [(gang, Pieces.of(gang)) for gang in sorted(snapshot.gangs, key=_gang_order)]
        demands = sorted(snapshot.demands, key=lambda d: _demand_order(d, params))
        axis = Axis.of((*demands, *(unit for _, pieces in gangs for unit in pieces.units)))
        market = Market.of(snapshot, params, axis)
        room = free_room(snapshot, axis)
        met, unmet = _sort_gangs(gangs, params, room, market)
        met_singles, unmet_singles = _sort_singles(demands, params, room, market)
        met, unmet = [*met, *met_singles], [*unmet, *unmet_singles]
        is_over_gpus = _is_over_gpus(unmet, params)
        is_due = any(u.is_due for u in unmet if u.is_rentable)
        is_promised = is_due and all(u.demand.why_now for u in unmet if u.is_rentable and u.is_due)
        due_code = "slo_breach" if is_promised else "queue_wait"
        code = due_code if is_due else "queue_gpus" if is_over_gpus else ""
        since_s = None
        if code:
            known = snapshot.breach_since_s
            since_s = snapshot.now_s if known is None else min(known, snapshot.now_s)
        return cls(
            snapshot=snapshot,
            axis=axis,
            market=market,
            met=tuple(met),
            unmet=tuple(unmet),
            breach_since_s=since_s,
            is_breach_stable=since_s is not None
            and snapshot.now_s - since_s >= params.stabilisation_s,
            breach_code=code,
            is_over_gpus=is_over_gpus,
        )

    @cached_property
    def home(self) -> Room:
        """The nodes that are there or come, and the hosts, as if nothing ran on them."""
        return _empty_home(self.snapshot, self.axis)

    def may_rent(self, unmet: Unmet) -> bool:
        """Return whether the work broke the limit: by its own wait, or all by their number."""
        return unmet.is_rentable and (unmet.is_due or self.is_over_gpus)


def free_room(snapshot: Snapshot, axis: Axis) -> Room:
    """Return what is free on nodes, and what joining hosts and booting instances will bring."""
    room = Room(axis)
    leaving = {i.instance_id for i in snapshot.instances if i.state in _LEAVING}
    there = set()
    for node in snapshot.nodes:
        if node.status is not NodeStatus.DEAD and node.instance_id:
            there.add(node.instance_id)
        if node.status in (NodeStatus.RUNNING, NodeStatus.IDLE) and node.instance_id not in leaving:
            room.add(node.available, node.labels, is_cloud=bool(node.instance_id))
    for host in snapshot.hosts:
        if host.is_coming:
            room.add(host.shape, host.labels, is_cloud=False, is_coming=True)
    # In the order of their launches: see `Room.fill_coming`.
    for instance in sorted(snapshot.instances, key=lambda i: (i.created_at_s, i.instance_id)):
        if instance.reason.code == JOB_WAITS:
            continue  # Our own queue counts on it.
        if is_coming(instance, now_s=snapshot.now_s) and instance.instance_id not in there:
            labels = rented_labels(instance.offer)
            room.add(instance.offer.shape, labels, is_cloud=True, is_coming=True)
    return room


def _empty_home(snapshot: Snapshot, axis: Axis) -> Room:
    room = Room(axis)
    there = set()
    for node in snapshot.nodes:
        if node.status is not NodeStatus.DEAD:
            there.add(node.host)
            room.add(node.total, node.labels, is_cloud=bool(node.instance_id))
    for host in snapshot.hosts:
        if host.name not in there:
            room.add(host.shape, host.labels, is_cloud=False)
    for instance in snapshot.instances:
        if is_coming(instance, now_s=snapshot.now_s):
            room.add(instance.offer.shape, rented_labels(instance.offer), is_cloud=True)
    return room


def _sort_gangs(
    gangs: list[tuple[Gang, Pieces]], params: PolicyParams, room: Room, market: Market
) -> tuple[list[Met], list[Unmet]]:
    met: list[Met] = []
    unmet: list[Unmet] = []
    for gang, pieces in gangs:
        placed = room.take_gang(pieces)
        if placed is not None:
            met.append(Met(_whole(gang), gang, pieces, placed))
        else:
            is_rentable = any(True for _ in market.holding(*pieces.units))
            is_due = _is_over(gang.waiting_s, params)
            unmet.append(Unmet(_whole(gang), 1, gang, pieces, is_rentable, is_due))
    return met, unmet


def _sort_singles(
    demands: list[Demand], params: PolicyParams, room: Room, market: Market
) -> tuple[list[Met], list[Unmet]]:
    met: list[Met] = []
    unmet: list[Unmet] = []
    for demand, placed in zip(demands, _place(demands, room, params), strict=True):
        if placed.count:
            met.append(Met(demand, None, None, placed))
        if placed.count < demand.count:
            left = demand.count - placed.count
            is_due = _is_late(demand, params)
            is_rentable = any(True for _ in market.holding(demand))
            unmet.append(Unmet(demand, left, None, None, is_rentable, is_due))
    return met, unmet


def _place(demands: list[Demand], room: Room, params: PolicyParams) -> list[Placed]:
    """Return where requests go: nodes that are there first, then those that come.

    For those that come two ways are tried. One is best fit, like what Ray does; the other is how
    they were chosen when they were launched, so that nothing is launched twice for work which
    only fits that way.
    """
    placed = [room.take(demand, demand.count, is_coming=False) for demand in demands]
    left = [
        (n, demand, demand.count - placed[n].count)
        for n, demand in enumerate(demands)
        if placed[n].count < demand.count
    ]
    work = [(demand, count) for _, demand, count in left]
    as_launched = room.fill_coming(work)
    best_fit = [room.take(demand, count, is_coming=True).count for demand, count in work]
    done = min(best_fit, as_launched, key=lambda counts: _uncovered(work, counts, params))
    for (n, _, _), coming in zip(left, done, strict=True):
        placed[n].coming = coming
    return placed


def _uncovered(
    work: list[tuple[Demand, int]], counts: list[int], params: PolicyParams
) -> tuple[float, float]:
    """Return the GPUs of late work, and of all work, that `counts` leave uncovered."""
    rows = [
        (_is_late(demand, params), max(gpus(demand.shape), 1e-3) * (count - done))
        for (demand, count), done in zip(work, counts, strict=True)
    ]
    return sum(amount for is_late, amount in rows if is_late), sum(amount for _, amount in rows)


def _is_over_gpus(unmet: list[Unmet], params: PolicyParams) -> bool:
    waiting = sum(u.gpu_count for u in unmet if u.is_rentable)
    return params.pending_gpus is not None and waiting > params.pending_gpus


def _whole(gang: Gang) -> Demand:
    return Demand(
        shape=total(gang.bundles),
        count=1,
        selectors=gang.bundles[0].selectors,
        waiting_s=gang.waiting_s,
    )


def _is_over(waiting_s: float | None, params: PolicyParams) -> bool:
    return waiting_s is not None and waiting_s > params.max_wait_s


def _is_late(demand: Demand, params: PolicyParams) -> bool:
    return bool(demand.why_now) or _is_over(demand.waiting_s, params)


def _gang_order(gang: Gang) -> tuple[float, float, str]:
    return (-gpus(total(gang.bundles)), -(gang.waiting_s or 0.0), gang.gang_id)


def _demand_order(demand: Demand, params: PolicyParams) -> tuple[object, ...]:
    # Late work first, then the largest: big pieces find no place between small ones.
    return (
        not _is_late(demand, params),
        -gpus(demand.shape),
        -(demand.waiting_s or 0.0),
        sorted(demand.shape.items()),
        selector_key(demand.selectors),
        demand.count,
        demand.why_now,
    )
