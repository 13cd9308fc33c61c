"""Which rented nodes without work to return."""

from __future__ import annotations

from hybrid.core.models import InstanceState, NodeStatus, Reason
from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.plan import Drain, Snapshot


def release(
    snapshot: Snapshot, draft: Draft, waiting: list[JobView], drain_s: float
) -> list[Drain]:
    """Return drains of rented nodes that have had no work for long enough.

    A node that a waiting gang can use stays: its other half may still be booting.

    Args:
        snapshot: What was seen.
        draft: The plan so far, which may have given some nodes work.
        waiting: Jobs that money may be spent on.
        drain_s: Deadline of the drain.
    """
    params = draft.terms.params
    sizes = [j.pieces[-1].shape.get("GPU", 0.0) for j in waiting if not j.is_single]
    least = min(sizes, default=None)
    state = {i.instance_id: i.state for i in snapshot.instances if not i.quarantine}
    cloud = draft.board.cloud
    drains = []
    for node in sorted(snapshot.nodes, key=lambda n: n.node_id):
        if not node.instance_id or node.status is not NodeStatus.IDLE or node.idle_s is None:
            continue
        if node.idle_s < params.idle_after_s or node.node_id not in cloud.free:
            continue
        if state.get(node.instance_id) is not InstanceState.RUNNING:
            continue
        total = cloud.total[node.node_id]
        if cloud.free[node.node_id] < total or (least is not None and total >= least):
            continue
        words = f"no job for {node.idle_s:.0f} s, over the limit of {params.idle_after_s:.0f} s"
        facts = {"idle_s": round(node.idle_s, 3), "idle_after_s": params.idle_after_s}
        drains.append(
            Drain(
                instance_id=node.instance_id,
                deadline_at_s=snapshot.now_s + drain_s,
                reason=Reason(code="idle", message=words, facts=facts),
            )
        )
    return drains
