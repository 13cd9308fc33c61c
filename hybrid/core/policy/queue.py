"""What waits, what free or coming capacity will take it, and whether the queue limit is broken."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.core.models import Demand, Gang, InstanceState, NodeStatus
from hybrid.core.policy.market import Market, rented_labels
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Snapshot
from hybrid.core.policy.room import Axis, Placed, Room, gpus, total, units


@dataclass(frozen=True)
class Unmet:
    """Requests of one kind, or one gang, that no free or coming capacity takes.

    Attributes:
        demand: One request; for a gang, the sum of its bundles.
        count: How many requests (1 for a gang).
        is_rentable: Some offer could hold it, sold out or not.
        is_due: It broke the queue limit by itself.
    """

    demand: Demand
    count: int
    gang: Gang | None
    is_rentable: bool
    is_due: bool

    @property
    def gpu_count(self) -> float:
        """GPUs of all of it."""
        return gpus(self.demand.shape) * self.count


@dataclass(frozen=True)
class Met:
    """Requests that free or coming capacity takes."""

    demand: Demand
    gang: Gang | None
    placed: Placed


@dataclass(frozen=True)
class Queue:
    """The waiting work of a snapshot, sorted into met and unmet.

    Attributes:
        home: The nodes that are there and the hosts, as if nothing ran on them.
        breach_since_s: When the limit was first found broken; `None` when it holds.
        is_breach_stable: It has been broken for long enough to spend money.
        breach_code: `queue_wait`, `queue_gpus`, or `""`.
    """

    axis: Axis
    market: Market
    home: Room
    met: tuple[Met, ...]
    unmet: tuple[Unmet, ...]
    breach_since_s: float | None
    is_breach_stable: bool
    breach_code: str

    @classmethod
    def of(cls, snapshot: Snapshot, params: PolicyParams) -> Queue:
        """Return the queue of a snapshot."""
        bundles = [b for gang in snapshot.gangs for b in (*gang.bundles, *units(gang))]
        axis = Axis.of((*snapshot.demands, *bundles))
        market = Market.of(snapshot, params)
        met, unmet = _sort(snapshot, params, free_room(snapshot, axis), market)
        code = _breach(unmet, params)
        since_s = None
        if code:
            known = snapshot.breach_since_s
            since_s = snapshot.now_s if known is None else min(known, snapshot.now_s)
        return cls(
            axis=axis,
            market=market,
            home=_empty_home(snapshot, axis),
            met=tuple(met),
            unmet=tuple(unmet),
            breach_since_s=since_s,
            is_breach_stable=since_s is not None
            and snapshot.now_s - since_s >= params.stabilisation_s,
            breach_code=code,
        )


def free_room(snapshot: Snapshot, axis: Axis) -> Room:
    """Return what is free on nodes, and what joining hosts and booting instances will bring."""
    room = Room(axis)
    for node in snapshot.nodes:
        if node.status in (NodeStatus.RUNNING, NodeStatus.IDLE):
            room.add(node.available, node.labels, is_cloud=bool(node.instance_id))
    for host in snapshot.hosts:
        if host.is_coming:
            room.add(host.shape, host.labels, is_cloud=False, is_coming=True)
    for instance in snapshot.instances:
        is_booting = instance.state in (InstanceState.REQUESTED, InstanceState.BOOTING)
        is_late = instance.deadline_at_s is not None and instance.deadline_at_s <= snapshot.now_s
        if is_booting and not is_late and not instance.quarantine:
            labels = rented_labels(instance.offer)
            room.add(instance.offer.shape, labels, is_cloud=True, is_coming=True)
    return room


def _empty_home(snapshot: Snapshot, axis: Axis) -> Room:
    room = Room(axis)
    for node in snapshot.nodes:
        if node.status is not NodeStatus.DEAD:
            room.add(node.total, node.labels, is_cloud=bool(node.instance_id))
    for host in snapshot.hosts:
        room.add(host.shape, host.labels, is_cloud=False)
    return room


def _sort(
    snapshot: Snapshot, params: PolicyParams, room: Room, market: Market
) -> tuple[list[Met], list[Unmet]]:
    met: list[Met] = []
    unmet: list[Unmet] = []
    for gang in sorted(snapshot.gangs, key=_gang_order):
        whole = _whole(gang)
        placed = room.take_gang(gang)
        if placed is not None:
            met.append(Met(whole, gang, placed))
        else:
            is_rentable = all(any(True for _ in market.holding(u)) for u in units(gang))
            is_due = _is_over(gang.waiting_s, params)
            unmet.append(Unmet(whole, 1, gang, is_rentable, is_due))
    for demand in sorted(snapshot.demands, key=lambda d: _demand_order(d, params)):
        placed = room.take(demand, demand.count)
        if placed.count:
            met.append(Met(demand, None, placed))
        if placed.count < demand.count:
            left = demand.count - placed.count
            is_due = _is_over(demand.waiting_s, params)
            is_rentable = any(True for _ in market.holding(demand))
            unmet.append(Unmet(demand, left, None, is_rentable, is_due))
    return met, unmet


def _breach(unmet: list[Unmet], params: PolicyParams) -> str:
    rentable = [u for u in unmet if u.is_rentable]
    if any(u.is_due for u in rentable):
        return "queue_wait"
    waiting = sum(u.gpu_count for u in rentable)
    if params.pending_gpus is not None and waiting > params.pending_gpus:
        return "queue_gpus"
    return ""


def _whole(gang: Gang) -> Demand:
    return Demand(
        shape=total(gang.bundles),
        count=1,
        selectors=gang.bundles[0].selectors,
        waiting_s=gang.waiting_s,
    )


def _is_over(waiting_s: float | None, params: PolicyParams) -> bool:
    return waiting_s is not None and waiting_s > params.max_wait_s


def _gang_order(gang: Gang) -> tuple[float, float, str]:
    return (-gpus(total(gang.bundles)), -(gang.waiting_s or 0.0), gang.gang_id)


def _demand_order(demand: Demand, params: PolicyParams) -> tuple[object, ...]:
    # Late work first, then the largest: big pieces find no place between small ones.
    return (
        not _is_over(demand.waiting_s, params),
        -gpus(demand.shape),
        -(demand.waiting_s or 0.0),
        sorted(demand.shape.items()),
        [[(r.key, r.is_negated, r.values) for r in s] for s in demand.selectors],
    )
