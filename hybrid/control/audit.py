"""Where a job ran: by our own records, and by what Ray still remembers of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hybrid.core.errors import ClusterError
from hybrid.core.models import Event, Job
from hybrid.core.ports import JobRunner
from hybrid.core.views import AttemptPlace, AuditView, TaskPlace

_RAYS = "Tasks are those that Ray remembers: the last 100,000 events, until its head ends."
_OURS = "Where a job without GPUs of its own has its driver is Ray's choice; its tasks are below."


def audit(
    job: Job,
    events: Iterable[Event],
    runner: JobRunner,
    places: Mapping[str, tuple[str, str]],
    *,
    now_s: float,
) -> AuditView:
    """Return where a job ran.

    Args:
        job: Its row.
        events: Its history.
        runner: Is asked for the tasks of each attempt.
        places: Name and site of each known node, by Ray's id.
        now_s: Now.
    """
    attempts = [_attempt(event, places) for event in events if event.kind == "job_placed"]
    notes = [_RAYS] if job.spec.is_queued else [_RAYS, _OURS]
    tasks: list[TaskPlace] = []
    is_complete = True
    for ray_id in ray_ids(job):
        try:
            found, is_all = runner.tasks(ray_id)
        except ClusterError as error:
            notes.append(f"Ray was not asked: {error}")
            is_complete = False
            break
        is_complete &= is_all
        for one in found:
            name, site = places.get(one.node_id, (one.node_id, ""))
            tasks.append(
                TaskPlace(node=name, site=site, kind=one.kind, name=one.name, count=one.count)
            )
    if not is_complete:
        notes.append("Ray did not name all tasks: at most 10,000 of each driver.")
    return AuditView(
        at_s=now_s,
        job_id=job.job_id,
        site=job.spec.site,
        attempts=tuple(attempts),
        tasks=tuple(tasks),
        is_complete=is_complete,
        notes=tuple(notes),
    )


def ray_ids(job: Job) -> list[str]:
    """Return Ray's ids of all attempts of a job."""
    numbers = range(1, max(1, job.attempt) + 1)
    return [job.model_copy(update={"attempt": number}).ray_id for number in numbers]


def _attempt(event: Event, places: Mapping[str, tuple[str, str]]) -> AttemptPlace:
    slots = event.facts.get("to")
    nodes = [str(slot[0]) for slot in slots] if isinstance(slots, list | tuple) else []
    known = [places.get(node_id, (node_id, "")) for node_id in nodes]
    number = event.facts.get("attempt")
    return AttemptPlace(
        attempt=number if isinstance(number, int) else 1,
        at_s=event.at_s,
        nodes=tuple(name for name, _ in known),
        sites=tuple(site for _, site in known),
        why=event.message,
    )
