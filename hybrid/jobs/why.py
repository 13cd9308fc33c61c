"""Why a job waits, in a sentence for its user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hybrid.core.labels import admits_any
from hybrid.core.models import Job, JobClass, JobState, Labels, Node, NodeStatus, Offer, Shape
from hybrid.core.policy.market import rented_labels
from hybrid.core.policy.plan import Action, Host, Launch
from hybrid.core.policy.room import fits
from hybrid.jobs.views import selectors_of, shape_of


@dataclass(frozen=True)
class Seen:
    """What a tick saw of the queue and of the places for it.

    Attributes:
        jobs: Live ones.
        actions: Of the tick's plan.
    """

    jobs: Sequence[Job]
    nodes: Sequence[Node]
    hosts: Sequence[Host]
    offers: Sequence[Offer]
    actions: Sequence[Action]


def why_waiting(seen: Seen) -> Mapping[str, str]:
    """Return why each job of our queue waits, by its id."""
    jobs = seen.jobs
    queue = [j for j in jobs if j.state is JobState.QUEUED and j.spec.is_queued and not j.slots]
    queue.sort(key=lambda j: (j.spec.job_class is JobClass.BEST_EFFORT, -j.spec.priority))
    rented_for = {
        action.reason.facts.get("for_job") for action in seen.actions if isinstance(action, Launch)
    }
    there = [n for n in seen.nodes if not n.instance_id and n.status is not NodeStatus.DEAD]
    names = {node.host for node in there}
    home = [(node.total, node.labels) for node in there]
    home += [(host.shape, host.labels) for host in seen.hosts if host.name not in names]
    said = {}
    known: dict[object, str] = {}
    for ahead, job in enumerate(queue):
        # Ten thousand jobs are of a few kinds.
        spec = job.spec
        kind = (tuple(shape_of(job).items()), spec.nodes, spec.site, spec.job_class)
        if kind not in known:
            known[kind] = _for_ever(job, home, seen.offers)
        why = known[kind]
        if not why and job.job_id in rented_for:
            why = "a node is being rented for it"
        said[job.job_id] = why or _in_line(job, ahead)
    return said


def _for_ever(job: Job, home: Iterable[tuple[Shape, Labels]], offers: Iterable[Offer]) -> str:
    shape, selectors = shape_of(job), selectors_of(job)
    count = max(1, job.spec.nodes)
    holding = sum(fits(shape, s) and admits_any(selectors, labels) for s, labels in home)
    # Best-effort work is never rented for.
    rentable = () if job.spec.job_class is JobClass.BEST_EFFORT else offers
    can_rent = any(
        fits(shape, offer.shape) and admits_any(selectors, rented_labels(offer))
        for offer in rentable
    )
    if holding >= count or can_rent:
        return ""
    where = "" if job.spec.site == "any" else f" with site {job.spec.site}"
    nodes = f"{count} nodes" if count > 1 else "a node"
    own = (
        f"are {holding} such nodes" if holding > 1 else f"is {'one' if holding else 'no'} such node"
    )
    return (
        f"nothing here can hold it: it needs {nodes} of {job.spec.gpus:g} GPUs{where}, and there "
        f"{own} of your own and no such offer"
    )


def _in_line(job: Job, ahead: int) -> str:
    room = "room at home" if job.spec.job_class is JobClass.BEST_EFFORT else "GPUs"
    before = f", {ahead} jobs before it" if ahead > 1 else ", 1 job before it" if ahead else ""
    again = f"{job.message}; " if job.started_at_s is not None and job.message else ""
    return f"{again}waits for {room}{before}"
