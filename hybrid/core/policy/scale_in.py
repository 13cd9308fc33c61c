"""Which rented nodes to bring home."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.core.labels import admits_any
from hybrid.core.models import Instance, InstanceState, Node, NodeStatus, Reason
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Drain, Snapshot, Terminate
from hybrid.core.policy.queue import Queue
from hybrid.core.policy.room import fits


def scale_in(snapshot: Snapshot, params: PolicyParams, queue: Queue) -> list[Drain | Terminate]:
    """Return drains of rented nodes, and terminations of instances that have no node yet.

    A money cap comes first and overrides a pause: a hard cap is a promise. Nothing else leaves
    while much of the cluster looks unhealthy, since it is then more likely that we see wrongly.
    """
    over = _cap_reached(snapshot)
    if over is not None:
        return list(_leave_now(snapshot, params, over))
    if snapshot.mode.is_in_paused or _is_mass_unhealthy(snapshot, params):
        return []
    blind = {source.name for source in snapshot.blind}
    drains: list[Drain | Terminate] = []
    for instance, node in _running(snapshot):
        if f"provider:{instance.offer.provider}" in blind:
            continue
        if _age_s(instance, snapshot) < min_life_s(instance, snapshot, params):
            continue
        if _is_wanted(node, params, queue):
            continue
        drain = _drain_idle(instance, node, snapshot, params)
        if drain is None and params.busy_drain == "come_home":
            drain = _come_home(instance, node, snapshot, params, queue)
        if drain is not None:
            drains.append(drain)
    return drains


def min_life_s(instance: Instance, snapshot: Snapshot, params: PolicyParams) -> float:
    """Return the age before which an instance is not asked to leave, seconds."""
    boot_s = snapshot.boot_s_by_offer.get(instance.offer.offer_id, 0.0)
    return max(params.min_life_s, params.boot_life_ratio * boot_s)


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
    instance: Instance, node: Node, snapshot: Snapshot, params: PolicyParams, queue: Queue
) -> Drain | None:
    """Drain a busy node whose work fits at home, when nothing waits."""
    if queue.unmet or queue.met or node.status is not NodeStatus.RUNNING:
        return None
    used = {k: v - node.available.get(k, 0.0) for k, v in node.total.items()}
    used = {k: v for k, v in used.items() if v > 0 and k in ("CPU", "GPU")}
    home = [n for n in snapshot.nodes if not n.instance_id and n.status is not NodeStatus.DEAD]
    free: dict[str, float] = {}
    for other in home:
        for name, amount in other.available.items():
            free[name] = free.get(name, 0.0) + amount
    if not home or not fits(used, free):
        return None
    return Drain(
        instance_id=instance.instance_id,
        is_busy=True,
        deadline_at_s=snapshot.now_s + params.drain_s,
        reason=Reason(
            code="come_home",
            message="nothing waits and the on-prem nodes have room for the work that runs on it",
            facts={f"used_{k.lower()}": v for k, v in sorted(used.items())},
        ),
    )


def _is_wanted(node: Node, params: PolicyParams, queue: Queue) -> bool:
    """Return whether waiting work would fit the node's free capacity."""
    waiting = [m.demand for m in queue.met if m.gang is None]
    waiting += [b for m in queue.met if m.gang for b in m.gang.bundles]
    for demand in waiting:
        is_fresh = demand.waiting_s is None or demand.waiting_s < params.placement_grace_s
        if (
            is_fresh
            and admits_any(demand.selectors, node.labels)
            and fits(demand.shape, node.available)
        ):
            return True
    return False


def _cap_reached(snapshot: Snapshot) -> Reason | None:
    """Return why everything rented must leave now, or `None`."""
    caps, used = snapshot.caps, snapshot.commitment
    rows = (
        ("day", caps.usd_per_day, used.day_usd),
        ("month", caps.usd_per_month, used.month_usd),
    )
    for period, cap, spent in rows:
        if cap is not None and spent + used.day_exit_usd >= cap and used.node_count:
            return Reason(
                code=f"budget_{period}",
                message=(
                    f"${spent:.2f} of ${cap:.2f} for this {period} are spent, and "
                    f"${used.day_exit_usd:.2f} are kept to bring {used.node_count} rented "
                    f"nodes home"
                ),
                facts={
                    "spent_usd": round(spent, 4),
                    "exit_usd": round(used.day_exit_usd, 4),
                    "cap_usd": cap,
                },
            )
    return None


def _leave_now(
    snapshot: Snapshot, params: PolicyParams, reason: Reason
) -> Iterator[Drain | Terminate]:
    for instance in sorted(snapshot.instances, key=lambda i: i.instance_id):
        if instance.quarantine:
            continue
        if instance.state is InstanceState.BOOTING:
            yield Terminate(instance_id=instance.instance_id, reason=reason)
        elif instance.state is InstanceState.RUNNING:
            yield Drain(
                instance_id=instance.instance_id,
                is_busy=True,
                deadline_at_s=snapshot.now_s + params.drain_s,
                reason=reason,
            )


def _running(snapshot: Snapshot) -> Iterator[tuple[Instance, Node]]:
    node_by_instance = {n.instance_id: n for n in snapshot.nodes if n.instance_id}
    for instance in sorted(snapshot.instances, key=lambda i: i.instance_id):
        node = node_by_instance.get(instance.instance_id)
        if instance.state is InstanceState.RUNNING and not instance.quarantine and node:
            yield instance, node


def _is_mass_unhealthy(snapshot: Snapshot, params: PolicyParams) -> bool:
    """Return whether so many nodes look dead that we may be the ones who see wrongly."""
    nodes = [n for n in snapshot.nodes if n.instance_id or n.host]
    live = {i.instance_id for i in snapshot.instances if i.state is InstanceState.RUNNING}
    bad = [n for n in nodes if n.status is NodeStatus.DEAD and (n.host or n.instance_id in live)]
    return len(bad) > 1 and len(bad) > params.unhealthy_ratio * len(nodes)


def _age_s(instance: Instance, snapshot: Snapshot) -> float:
    return max(0.0, snapshot.now_s - instance.created_at_s)
