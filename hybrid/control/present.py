"""Turning what the loop knows into the views of the API. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hybrid.core.cost import instance_usd
from hybrid.core.labels import sites
from hybrid.core.models import ClusterView, Instance, InstanceState, Node, NodeStatus, Spend
from hybrid.core.policy.plan import Host
from hybrid.core.ports import HostState, HostStatus
from hybrid.core.views import (
    BudgetView,
    CostLine,
    CostView,
    DemandView,
    InstanceView,
    NodeView,
)

_S = InstanceState


def instance_view(instance: Instance, *, now_s: float) -> InstanceView:
    """Return an instance as people and scripts see it."""
    return InstanceView(
        instance_id=instance.instance_id,
        provider=instance.offer.provider,
        provider_id=instance.provider_id,
        offer_id=instance.offer.offer_id,
        instance_type=instance.offer.instance_type,
        market=instance.offer.market.value,
        state=instance.state.value,
        reason=instance.reason,
        gpu_count=instance.offer.gpu_count,
        usd_per_hour=instance.offer.usd_per_hour,
        cost_usd=instance_usd(instance, now_s=now_s),
        created_at_s=instance.created_at_s,
        joined_at_s=instance.joined_at_s,
        state_at_s=instance.state_at_s,
        deadline_at_s=instance.deadline_at_s,
        lease_until_s=instance.lease_until_s,
        ended_at_s=instance.ended_at_s,
        node_id=instance.node_id,
        problem=instance.problem,
        quarantine=instance.quarantine,
    )


def node_views(
    view: ClusterView,
    hosts: Sequence[Host],
    statuses: Mapping[str, HostStatus],
    instances: Sequence[Instance],
) -> tuple[NodeView, ...]:
    """Return the head, every host and every rented instance, whether it is a node or not."""
    living = [n for n in view.nodes if n.status is not NodeStatus.DEAD]
    by_host = {n.host: n for n in living if n.host}
    by_instance = {n.instance_id: n for n in living if n.instance_id}
    views = [_node_view(n, "head", "onprem") for n in living if n.is_head]
    for host in hosts:
        node = by_host.get(host.name)
        if node is not None:
            views.append(_node_view(node, host.name, "onprem"))
        else:
            views.append(_host_view(host, statuses.get(host.name)))
    views += [_rented_view(i, by_instance.get(i.instance_id)) for i in instances]
    known = {i.instance_id for i in instances}
    names = {host.name for host in hosts}
    for node in living:
        is_known = node.is_head or node.host in names
        if not is_known and node.instance_id not in known:
            name = node.instance_id or node.host or node.node_id[:12]
            views.append(_node_view(node, name, node.labels.get("site", "unknown")))
    return tuple(views)


def _node_view(node: Node, name: str, site: str) -> NodeView:
    states = {NodeStatus.IDLE: "idle", NodeStatus.RUNNING: "busy"}
    gpus, cpus = node.total.get("GPU", 0.0), node.total.get("CPU", 0.0)
    return NodeView(
        name=name,
        site=node.labels.get("site", site),
        provider=node.labels.get("provider", ""),
        node_id=node.node_id,
        instance_type=node.labels.get("instance-type", ""),
        state=states.get(node.status, node.status.value),
        why="" if node.status is NodeStatus.IDLE else "; ".join(node.activity),
        gpus_total=gpus,
        gpus_used=round(gpus - node.available.get("GPU", 0.0), 4),
        cpus_total=cpus,
        cpus_used=round(cpus - node.available.get("CPU", 0.0), 4),
        idle_s=node.idle_s,
        labels=node.labels,
    )


def _host_view(host: Host, status: HostStatus | None) -> NodeView:
    state = status.state if status else HostState.ABSENT
    is_joining = state in (HostState.JOINING, HostState.JOINED)
    return NodeView(
        name=host.name,
        site="onprem",
        provider=host.labels.get("provider", ""),
        state="joining" if is_joining else state.value,
        why=status.problem if status else "",
        gpus_total=host.shape.get("GPU", 0.0),
        cpus_total=host.shape.get("CPU", 0.0),
        labels=host.labels,
    )


def _rented_view(instance: Instance, node: Node | None) -> NodeView:
    """Return a rented node; while it is one, Ray's word on its work, else the ledger's state."""
    offer = instance.offer
    seen = None if node is None else _node_view(node, instance.instance_id, "cloud")
    at_work = seen if instance.state is _S.RUNNING else None
    return NodeView(
        name=instance.instance_id,
        site="cloud",
        provider=offer.provider,
        node_id=seen.node_id if seen else "",
        instance_type=offer.instance_type,
        state=at_work.state if at_work else instance.state.value,
        why=(at_work.why if at_work else instance.problem) or instance.reason.message,
        gpus_total=offer.gpu_count,
        gpus_used=seen.gpus_used if seen else None,
        cpus_total=offer.shape.get("CPU", 0.0),
        cpus_used=seen.cpus_used if seen else None,
        idle_s=seen.idle_s if seen else None,
        usd_per_hour=offer.usd_per_hour,
        since_at_s=instance.created_at_s,
        labels=seen.labels if seen else instance.spec.labels,
    )


def demand_views(view: ClusterView) -> tuple[DemandView, ...]:
    """Return waiting work, the longest waiting first."""
    views = [
        DemandView(shape=d.shape, count=d.count, sites=sites(d.selectors), waiting_s=d.waiting_s)
        for d in view.demands
    ]
    views += [
        DemandView(
            shape=bundle.shape,
            count=bundle.count,
            sites=sites(bundle.selectors),
            waiting_s=gang.waiting_s,
            gang_id=gang.gang_id,
        )
        for gang in view.gangs
        for bundle in gang.bundles
    ]
    return tuple(sorted(views, key=lambda v: -(v.waiting_s or 0.0)))


def cost_view(
    *,
    live: Sequence[Instance],
    instances: Sequence[Instance],
    spends: Sequence[Spend],
    budget: BudgetView,
    since_s: float,
    now_s: float,
) -> CostView:
    """Return estimated spend of everything rented since an instant, ended and running.

    Args:
        live: All that is not ended; what is booked among them meanwhile counts once.
        instances: To be shown, the newest ones.
        spends: What is booked.
        budget: Caps and what is used of them.
        since_s: The instant.
        now_s: Now.
    """
    booked = {s.instance_id for s in spends}
    live = [i for i in live if i.instance_id not in booked]
    running = [
        Spend(
            instance_id=i.instance_id,
            provider=i.offer.provider,
            offer_id=i.offer.offer_id,
            reason_code=i.reason.code,
            from_s=i.created_at_s,
            to_s=now_s,
            gpu_count=i.offer.gpu_count,
            usd=instance_usd(i, now_s=now_s),
        )
        for i in live
    ]
    # A machine that ran across `since_s` counts with the part that came after.
    rows = [cut for s in (*spends, *running) if (cut := _since(s, since_s)) is not None]
    shown = [i for i in instances if (i.ended_at_s or now_s) >= since_s]
    return CostView(
        at_s=now_s,
        since_at_s=since_s,
        total_usd=sum(s.usd for s in rows),
        running_usd_per_hour=sum(i.offer.usd_per_hour for i in live),
        by_provider=_lines(rows, "provider"),
        by_reason=_lines(rows, "reason_code"),
        instances=tuple(instance_view(i, now_s=now_s) for i in shown),
        budget=budget,
        notes=(
            "An estimate: price at launch times time from the launch request to the proof of "
            "the end. Disks, addresses and traffic are not in it.",
            "On-prem machines are not in it: their price is not configured.",
        ),
    )


def _since(spend: Spend, since_s: float) -> Spend | None:
    if spend.to_s < since_s:
        return None
    lasted_s = spend.to_s - spend.from_s
    if spend.from_s >= since_s or lasted_s <= 0:
        return spend
    share = (spend.to_s - since_s) / lasted_s
    return spend.model_copy(update={"from_s": since_s, "usd": spend.usd * share})


def _lines(rows: Sequence[Spend], key: str) -> tuple[CostLine, ...]:
    groups: dict[str, list[Spend]] = {}
    for row in rows:
        groups.setdefault(getattr(row, key), []).append(row)
    lines = [
        CostLine(
            key=name,
            instance_count=len(group),
            gpu_hours=sum(s.gpu_count * (s.to_s - s.from_s) / 3600 for s in group),
            usd=sum(s.usd for s in group),
        )
        for name, group in groups.items()
    ]
    return tuple(sorted(lines, key=lambda line: (-line.usd, line.key)))
