"""Which rented nodes without work to return."""

from __future__ import annotations

from hybrid.core.models import Instance, InstanceState, Node, NodeStatus, Reason
from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.rent import JOB_WAITS
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.pieces import gpus
from hybrid.core.policy.plan import Drain, Snapshot
from hybrid.core.policy.scale_in import is_mass_trouble


def release(
    snapshot: Snapshot, draft: Draft, waiting: list[JobView], params: PolicyParams
) -> list[Drain]:
    """Return drains of nodes rented for jobs that have had no work for long enough.

    A node that a waiting gang can use stays: its other half may still be booting.

    Args:
        snapshot: What was seen.
        draft: The plan so far, which may have given some nodes work.
        waiting: Jobs that money may be spent on.
        params: Thresholds.
    """
    after_s = draft.terms.params.idle_after_s
    idle = [node for node in snapshot.nodes if node.instance_id and _is_idle(node, after_s)]
    if not idle:
        return []
    sizes = [gpus(job.pieces[-1].shape) for job in waiting if not job.is_single]
    least = min(sizes, default=None)
    blind = {source.name for source in snapshot.blind}
    mine = {
        i.instance_id: i
        for i in snapshot.instances
        if i.reason.code == JOB_WAITS
        and i.state is InstanceState.RUNNING
        and not i.quarantine
        and f"provider:{i.offer.provider}" not in blind
    }
    cloud = draft.board.cloud
    drains = []
    for node in sorted(idle, key=lambda n: n.node_id):
        instance, total = mine.get(node.instance_id), cloud.total.get(node.node_id)
        if instance is None or total is None or cloud.free[node.node_id] < total:
            continue
        if least is None or total < least:
            drains.append(_drain(node, instance, snapshot, draft, params))
    return [] if drains and is_mass_trouble(snapshot, params) else drains


def _is_idle(node: Node, after_s: float) -> bool:
    return node.status is NodeStatus.IDLE and node.idle_s is not None and node.idle_s >= after_s


def _drain(
    node: Node, instance: Instance, snapshot: Snapshot, draft: Draft, params: PolicyParams
) -> Drain:
    idle_s, after_s = node.idle_s or 0.0, draft.terms.params.idle_after_s
    return Drain(
        instance_id=instance.instance_id,
        deadline_at_s=snapshot.now_s + params.drain_s,
        reason=Reason(
            code="idle",
            message=f"no job for {idle_s:.0f} s, over the limit of {after_s:.0f} s",
            facts={"idle_s": round(idle_s, 3), "idle_after_s": after_s},
        ),
    )
