"""Turning what the loop knows into the views of the API. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from hybrid.core.cost import commitment, instance_usd
from hybrid.core.labels import describe, sites
from hybrid.core.models import (
    Caps,
    ClusterView,
    Instance,
    InstanceState,
    Job,
    JobState,
    Node,
    NodeStatus,
    Shape,
    Spend,
)
from hybrid.core.policy.plan import Finding, Host
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

_IN_USE = re.compile(r"Resource: (\S+) currently in use\.?")
_GROUP = re.compile(r"\S*_group_\S*")
_WORDS = {
    "Busy workers on node": "a worker process runs",
    "Pulling task arguments": "arguments of a task are on their way",
}


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
    since_s: Mapping[str, float],
    *,
    progress: Mapping[str, str],
) -> tuple[NodeView, ...]:
    """Return the head, every host and every rented instance, whether it is a node or not.

    Args:
        view: What Ray has.
        hosts: What is configured at home.
        statuses: How those are.
        instances: What is rented.
        since_s: When nodes joined, by Ray's id.
        progress: What the machine of an instance does until it is a node, by our id.
    """
    living = [n for n in view.nodes if n.status is not NodeStatus.DEAD]
    by_host = {n.host: n for n in living if n.host}
    by_instance = {n.instance_id: n for n in living if n.instance_id}

    def seen(node: Node, name: str, site: str) -> NodeView:
        at_s = since_s.get(node.node_id)
        return _node_view(node, name, site).model_copy(update={"since_at_s": at_s})

    views = [seen(n, "head", "onprem") for n in living if n.is_head]
    for host in hosts:
        node = by_host.get(host.name)
        if node is not None:
            views.append(seen(node, host.name, "onprem"))
        else:
            views.append(_host_view(host, statuses.get(host.name)))
    for instance in instances:
        name = instance.instance_id
        views.append(_rented_view(instance, by_instance.get(name), progress.get(name, "")))
    known = {i.instance_id for i in instances}
    names = {host.name for host in hosts}
    for node in living:
        is_known = node.is_head or node.host in names
        if not is_known and node.instance_id not in known:
            name = node.instance_id or node.host or node.node_id[:12]
            views.append(seen(node, name, node.labels.get("site", "unknown")))
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
        why=_activity_text(node),
        gpus_total=gpus,
        gpus_used=round(gpus - node.available.get("GPU", 0.0), 4),
        cpus_total=cpus,
        cpus_used=round(cpus - node.available.get("CPU", 0.0), 4),
        idle_s=node.idle_s,
        labels=node.labels,
    )


def _activity_text(node: Node) -> str:
    """Return what keeps a node from being idle, from Ray's words for it."""
    if node.status is NodeStatus.IDLE:
        return ""
    used = sorted({m[1] for words in node.activity if (m := _IN_USE.fullmatch(words))})
    if used:
        names = (_GROUP.sub("placement group", name) for name in used)
        return f"{', '.join(dict.fromkeys(names))} in use"
    other = (words.rstrip(".") for words in node.activity if not _IN_USE.fullmatch(words))
    words = "; ".join(_WORDS.get(text, text) for text in other)
    return words or "Ray does not call it idle yet"


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


def _rented_view(instance: Instance, node: Node | None, progress: str) -> NodeView:
    """Return a rented node; while it works, Ray's word on that, else the ledger's state.

    Why it was rented is told until it says what it does; why it leaves, once it was a node.
    """
    offer = instance.offer
    seen = None if node is None else _node_view(node, instance.instance_id, "cloud")
    at_work = seen if instance.state is _S.RUNNING else None
    doing = progress if instance.state is _S.BOOTING else ""
    return NodeView(
        name=instance.instance_id,
        site="cloud",
        provider=offer.provider,
        node_id=seen.node_id if seen else "",
        instance_type=offer.instance_type,
        state=at_work.state if at_work else instance.state.value,
        why=at_work.why if at_work else instance.problem or doing or instance.reason.message,
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
        DemandView(
            shape=d.shape,
            count=d.count,
            sites=sites(d.selectors),
            where=describe(d.selectors),
            waiting_s=d.waiting_s,
        )
        for d in view.demands
    ]
    views += [
        DemandView(
            shape=bundle.shape,
            count=bundle.count,
            sites=sites(bundle.selectors),
            where=describe(bundle.selectors),
            waiting_s=gang.waiting_s,
            gang_id=gang.gang_id,
        )
        for gang in view.gangs
        for bundle in gang.bundles
    ]
    return tuple(sorted(views, key=lambda v: -(v.waiting_s or 0.0)))


def with_reasons(
    jobs: Iterable[Job], findings: Sequence[Finding], queue: Mapping[str, str]
) -> tuple[Job, ...]:
    """Return jobs, those that wait with a word on why.

    Args:
        jobs: Rows.
        findings: The plan's word on drivers that wait in Ray.
        queue: Why jobs of our own queue wait, by id.
    """
    why = {_key(f.shape): f.reason.message for f in findings if not f.gang_id}

    def message(job: Job) -> str:
        if job.state is JobState.QUEUED:
            return queue.get(job.job_id, job.message)
        if job.state is JobState.SUBMITTED and not job.slots and _driver_key(job) in why:
            return f"waits: {why[_driver_key(job)]}"
        return job.message

    return tuple(
        job if (said := message(job)) == job.message else job.model_copy(update={"message": said})
        for job in jobs
    )


def _driver_key(job: Job) -> tuple[tuple[str, float], ...]:
    spec = job.spec
    return _key({"GPU": spec.gpus, "CPU": spec.cpus, "memory": float(spec.memory_bytes)})


def _key(shape: Shape) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((name, amount) for name, amount in shape.items() if amount))


def cost_view(
    *,
    live: Sequence[Instance],
    instances: Sequence[Instance],
    spends: Sequence[Spend],
    caps: Caps,
    exit_s: float,
    since_s: float,
    now_s: float,
) -> CostView:
    """Return estimated spend of everything rented since an instant, ended and running.

    Args:
        live: All that is not ended; what is booked among them meanwhile counts once.
        instances: To be shown, the newest ones.
        spends: What is booked since that instant, and since the month began.
        caps: Shown with what is used of them at this moment, by the same sums.
        exit_s: Time each live instance may still run when money must stop.
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
        budget=BudgetView(caps=caps, now=commitment(live, spends, now_s=now_s, exit_s=exit_s)),
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
