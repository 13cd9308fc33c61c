"""Which rented nodes to bring home."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hybrid.core.labels import admits_any
from hybrid.core.models import Demand, Instance, InstanceState, Node, NodeStatus, Reason
from hybrid.core.policy.caps import leave_for_caps
from hybrid.core.policy.health import health_of
from hybrid.core.policy.jobs.rent import JOB_WAITS
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Drain, Snapshot, Terminate
from hybrid.core.policy.queue import Met, Queue, Unmet
from hybrid.core.policy.room import Axis, Room, Vector, fits

_S = InstanceState


def scale_in(snapshot: Snapshot, params: PolicyParams, queue: Queue) -> list[Drain | Terminate]:
    """Return drains of rented nodes, and terminations of instances that have no node yet.

    A money cap comes first and overrides a pause: a hard cap is a promise. Nothing else leaves
    while much of the cluster looks unhealthy, since it is then more likely that we see wrongly.
    """
    leaving = leave_for_caps(snapshot, params)
    if leaving is not None:
        return leaving
    if snapshot.mode.is_in_paused or is_mass_trouble(snapshot, params):
        return []
    blind = {source.name for source in snapshot.blind}
    old = [
        (instance, node)
        for instance, node in _running(snapshot)
        if f"provider:{instance.offer.provider}" not in blind
        and _age_s(instance, snapshot) >= min_life_s(instance, snapshot, params)
    ]
    drains: list[Drain | Terminate] = []
    wishes = Wishes.of(queue, params)
    for instance, node in old:
        drain = _drain_idle(instance, node, snapshot, params)
        if drain is not None and not wishes.wants(node):
            drains.append(drain)
    if params.busy_drain == "come_home" and not (queue.unmet or queue.met):
        drains += _come_home(old, snapshot, params)
    return drains


def min_life_s(instance: Instance, snapshot: Snapshot, params: PolicyParams) -> float:
    """Return the age before which an instance is not asked to leave, seconds."""
    boot_s = snapshot.boot_s_by_offer.get(instance.offer.offer_id, instance.offer.boot_s)
    return max(params.min_life_s, params.boot_life_ratio * boot_s)


@dataclass
class Wishes:
    """Waiting work that is young enough for Ray to place it yet.

    Attributes:
        fresh: One request of each kind; of a gang, its bundles.
    """

    axis: Axis
    fresh: tuple[Demand, ...]
    _known: dict[tuple[Vector, tuple[str, ...]], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, queue: Queue, params: PolicyParams) -> Wishes:
        """Return the wishes of a queue."""
        fresh: list[Demand] = []
        waiting: list[Met | Unmet] = [*queue.met, *queue.unmet]
        for work in waiting:
            waiting_s = work.demand.waiting_s
            if waiting_s is None or waiting_s < params.placement_grace_s:
                fresh += work.units
        return cls(queue.axis, tuple(fresh))

    def wants(self, node: Node) -> bool:
        """Return whether some of the work would fit the node's free capacity."""
        # Hundreds of idle nodes are mostly equal: each kind is judged once.
        kind = (
            self.axis.vector(node.available),
            tuple(node.labels.get(key, "") for key in self.axis.keys),
        )
        if kind not in self._known:
            self._known[kind] = any(
                fits(d.shape, node.available) and admits_any(d.selectors, node.labels)
                for d in self.fresh
            )
        return self._known[kind]


def _drain_idle(
    instance: Instance, node: Node, snapshot: Snapshot, params: PolicyParams
) -> Drain | None:
    if node.status is not NodeStatus.IDLE or node.idle_s is None:
        return None
    if node.idle_s < params.idle_after_s:
        return None
    age_s = _age_s(instance, snapshot)
    return Drain(
        instance_id=instance.instance_id,
        deadline_at_s=snapshot.now_s + params.drain_s,
        reason=Reason(
            code="idle",
            message=(
                f"idle for {node.idle_s:.0f} s, over the limit of {params.idle_after_s:.0f} s, "
                f"and no waiting work needs it"
            ),
            facts={
                "idle_s": round(node.idle_s, 3),
                "idle_after_s": params.idle_after_s,
                "age_s": round(age_s, 3),
            },
        ),
    )


def _come_home(
    old: list[tuple[Instance, Node]], snapshot: Snapshot, params: PolicyParams
) -> Iterator[Drain]:
    """Drain busy nodes whose work fits at home, each on one home node beside the others.

    On one node, because the work may be a single task that cannot be divided.
    """
    busy = [
        (instance, Demand(shape=_used(node), count=1))
        for instance, node in old
        if node.status is NodeStatus.RUNNING
    ]
    home = Room(Axis.of(work for _, work in busy))
    for node in snapshot.nodes:
        if not node.instance_id and node.status in (NodeStatus.RUNNING, NodeStatus.IDLE):
            home.add(node.available, node.labels, is_cloud=False)
    for instance, work in busy:
        if home.take(work, 1).count:
            yield Drain(
                instance_id=instance.instance_id,
                is_busy=True,
                deadline_at_s=snapshot.now_s + params.drain_s,
                reason=Reason(
                    code="come_home",
                    message="nothing waits, and an on-prem node has room for the work on it",
                    facts={f"used_{k.lower()}": v for k, v in sorted(work.shape.items())},
                ),
            )


def _used(node: Node) -> dict[str, float]:
    used = {name: total - node.available.get(name, 0.0) for name, total in node.total.items()}
    return {k: v for k, v in used.items() if v > 0 and k != "object_store_memory"}


def _running(snapshot: Snapshot) -> Iterator[tuple[Instance, Node]]:
    """Yield the rented nodes that run, but not those rented for jobs: see `jobs.release`."""
    node_by_instance = {
        node.instance_id: node
        for node in sorted(snapshot.nodes, key=lambda n: n.node_id)
        if node.instance_id and node.status is not NodeStatus.DEAD
    }
    for instance in sorted(snapshot.instances, key=lambda i: i.instance_id):
        node = node_by_instance.get(instance.instance_id)
        if instance.reason.code == JOB_WAITS:
            continue
        if instance.state is _S.RUNNING and not instance.quarantine and node:
            yield instance, node


def is_mass_trouble(snapshot: Snapshot, params: PolicyParams) -> bool:
    """Return whether so much looks unhealthy that we may be the ones who see wrongly."""
    hosts = [host.name for host in snapshot.hosts]
    health = health_of(snapshot.nodes, hosts, snapshot.instances)
    return health.is_mass_trouble(params.unhealthy_ratio)


def _age_s(instance: Instance, snapshot: Snapshot) -> float:
    return max(0.0, snapshot.now_s - instance.created_at_s)
