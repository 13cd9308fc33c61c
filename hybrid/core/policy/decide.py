"""The burst policy: `decide(snapshot, params) -> Plan`. The controller and the simulator run it."""

from __future__ import annotations

from hybrid.core.policy.caps import leave_for_caps
from hybrid.core.policy.explain import summarise
from hybrid.core.policy.jobs.plan_jobs import is_only_jobs, plan_jobs
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Action, Launch, Plan, Snapshot
from hybrid.core.policy.queue import Queue
from hybrid.core.policy.scale_in import scale_in
from hybrid.core.policy.scale_out import scale_out


def decide(snapshot: Snapshot, params: PolicyParams) -> Plan:
    """Return what to do now, and why, and why not more.

    Work of our own queue, of which much is known, is planned by `policy.jobs`. Work of which
    only Ray knows is never stopped nor moved: what waits is packed onto free capacity, then onto
    capacity that is coming; what is left and may run in the cloud is the unmet demand. If it
    breaks the queue limit for long enough, the cheapest offers are launched for it, under every
    cap. Rented nodes that are idle, old enough and wanted by nobody are asked to leave.

    A pure function: equal snapshots give equal plans, and the order inside a snapshot's tuples
    does not matter.
    """
    ray = next((source for source in snapshot.blind if source.name == "ray"), None)
    if ray is not None:
        leaving = leave_for_caps(snapshot, params)
        words = f"Ray does not answer, so nothing is decided: {ray.problem}"
        return Plan(
            actions=tuple(leaving or ()),
            breach_since_s=snapshot.breach_since_s,
            summary=summarise(snapshot, leaving, ()) if leaving else words,
        )
    leaving = leave_for_caps(snapshot, params)
    by_job = plan_jobs(snapshot, params, may_spend=leaving is None)
    if is_only_jobs(snapshot):
        actions: tuple[Action, ...] = (*by_job, *(leaving or ()))
        return Plan(actions=actions, summary=summarise(snapshot, actions, ()))
    queue = Queue.of(snapshot, params)
    for_jobs = [action for action in by_job if isinstance(action, Launch)]
    for launch in for_jobs:
        # One purse for both: what jobs take of stock and caps is gone for Ray's own work.
        queue.market.take(launch.offer, 1)
    launches, findings = scale_out(snapshot, params, queue, launched=len(for_jobs))
    drains = scale_in(snapshot, params, queue)
    actions = (*by_job, *launches, *drains)
    return Plan(
        actions=actions,
        findings=tuple(findings),
        breach_since_s=queue.breach_since_s,
        summary=summarise(snapshot, actions, findings),
    )
