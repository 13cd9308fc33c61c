"""The queue as the policy sees it: jobs, and what is free for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hybrid.core.models import (
    Demand,
    Gang,
    Job,
    JobClass,
    JobState,
    LabelConstraint,
    Node,
    Selector,
    Shape,
)
from hybrid.core.models.work import Checkpoint, JobView
from hybrid.data.plan import CLOUD, Entry, Links, ship
from hybrid.jobs.params import NO_WAIT_LIMIT_S, QueueParams

NODE_ID = "ray.io/node-id"
"""Ray's own label: work that asks for it waits for that very node, and nothing can be rented
for it."""

_S = JobState


class _Made(NamedTuple):
    job: Job
    view: JobView


@dataclass
class Views:
    """Makes the policy's view of each job once per change of it."""

    params: QueueParams
    _made: dict[str, _Made] = field(default_factory=dict)

    def of(self, jobs: Iterable[Job]) -> tuple[JobView, ...]:
        """Return the jobs that the policy may plan for.

        Left out: work that Ray places, what a user has cancelled, and jobs that are on their
        way: asked to stop, or with a place that is kept for them.
        """
        made: dict[str, _Made] = {}
        for job in jobs:
            if not _is_planned(job):
                continue
            known = self._made.get(job.job_id)
            if known is None or known.job is not job:
                known = _Made(job, view_of(job, self.params))
            made[job.job_id] = known
        self._made = made
        return tuple(one.view for one in made.values())


def _is_planned(job: Job) -> bool:
    if not job.spec.is_queued or job.is_cancel_asked or job.stop is not None:
        return False
    return not (job.state is _S.QUEUED and job.slots)


def view_of(job: Job, params: QueueParams) -> JobView:
    """Return a job as the policy sees it."""
    spec, saves = job.spec, job.spec.checkpoint
    checkpoint = None
    if saves is not None and not job.is_deaf:
        checkpoint = Checkpoint(save_s=saves.save_s, load_s=saves.load_s, size_gb=saves.size_gb)
    # Unknown sizes and speeds stay unknown: such a job goes out at its last moment only.
    entries = [Entry(entry.url, entry.size_gb, entry.place) for entry in spec.data]
    shipment = ship(entries, CLOUD, Links(mbit_per_s=params.data_mbit_per_s))
    return JobView(
        job_id=job.job_id,
        units=(Demand(shape=shape_of(job), count=max(1, spec.nodes), selectors=selectors_of(job)),),
        submitted_at_s=job.created_at_s,
        max_wait_s=max_wait_s(job, params),
        checkpoint=checkpoint,
        slots=job.slots,
        progress_s=job.progress_s,
        useful_from_s=job.useful_from_s,
        is_started=job.started_at_s is not None,
        suspension_count=job.suspensions,
        interruption_count=job.interruptions,
        priority=spec.priority,
        is_filler=spec.job_class is JobClass.BEST_EFFORT,
        user=spec.user,
        data_s=shipment.seconds,
        data_usd=shipment.usd or 0.0,
    )


def max_wait_s(job: Job, params: QueueParams) -> float:
    """Return how long a job may wait: its own word, its class's, or what its deadline leaves."""
    spec = job.spec
    if spec.job_class is JobClass.BEST_EFFORT:
        return NO_WAIT_LIMIT_S
    wait_s = spec.max_wait_s
    if wait_s is None:
        wait_s = params.max_wait_by_class_s.get(spec.job_class, NO_WAIT_LIMIT_S)
    if spec.deadline_at_s is not None:
        wait_s = min(wait_s, spec.deadline_at_s - spec.lasts_s - job.created_at_s)
    return max(0.0, wait_s)


def shape_of(job: Job) -> Shape:
    """Return what a job needs on one node."""
    spec = job.spec
    wants = {"GPU": spec.gpus, "CPU": spec.cpus_each, "memory": float(spec.memory_bytes)}
    return {name: amount for name, amount in wants.items() if amount}


def selectors_of(job: Job) -> tuple[Selector, ...]:
    """Return where a job may run; nothing for anywhere."""
    if job.spec.site == "any":
        return ()
    return ((LabelConstraint(key="site", values=(job.spec.site,)),),)


def nodes_for_jobs(nodes: Iterable[Node], jobs: Iterable[Job]) -> tuple[Node, ...]:
    """Return nodes with what is free of them for the policy.

    Ray shows a job's GPUs as taken some seconds after it was given the job, and as free some
    seconds after the end. So ours are counted from our own rows: what a job holds until its
    process has ended, and what is kept for jobs on their way. What Ray says beyond that is the
    work of others.
    """
    held: dict[str, dict[str, float]] = {}
    running: dict[str, dict[str, float]] = {}
    for job in jobs:
        if not job.spec.is_queued or not (job.slots or job.stop):
            continue
        shape = shape_of(job)
        for slot in job.slots:
            _add(held, slot.node_id, shape)
            if job.state in (_S.SUBMITTED, _S.RUNNING):
                _add(running, slot.node_id, shape)
        for slot in job.stop.slots if job.stop else ():
            _add(held, slot.node_id, shape)
    if not held:
        return tuple(nodes)
    return tuple(
        _left(node, held[node.node_id], running.get(node.node_id, {}))
        if node.node_id in held
        else node
        for node in nodes
    )


def without_ours(demands: Iterable[Demand]) -> tuple[Demand, ...]:
    """Return waiting work without what waits for one certain node: jobs that we have placed."""
    return tuple(
        demand
        for demand in demands
        if not any(rule.key == NODE_ID for selector in demand.selectors for rule in selector)
    )


def gangs_without_ours(gangs: Iterable[Gang]) -> tuple[Gang, ...]:
    """Return waiting placement groups without those that wait for certain nodes."""
    return tuple(gang for gang in gangs if len(without_ours(gang.bundles)) == len(gang.bundles))


def _add(table: dict[str, dict[str, float]], node_id: str, shape: Shape) -> None:
    amounts = table.setdefault(node_id, {})
    for name, amount in shape.items():
        amounts[name] = amounts.get(name, 0.0) + amount


def _left(node: Node, held: Mapping[str, float], running: Mapping[str, float]) -> Node:
    available = dict(node.available)
    for name, amount in held.items():
        total = node.total.get(name, 0.0)
        used = total - node.available.get(name, 0.0)
        others = max(0.0, used - running.get(name, 0.0))
        available[name] = max(0.0, total - others - amount)
    return node.model_copy(update={"available": available})
