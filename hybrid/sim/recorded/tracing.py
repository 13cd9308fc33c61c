"""A running cluster's demand as a trace: its ledger's jobs, and what only Ray knew."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hybrid.core.models import Job
from hybrid.core.policy.plan import Snapshot
from hybrid.sim.recorded.usage import CUT_END, usage_of
from hybrid.sim.traces.reading import TraceError
from hybrid.sim.traces.trace import Skipped, Trace, TraceJob

RAY_CLASS = "ray"
"""Class of work that is not in the ledger."""


@dataclass(frozen=True)
class _Asked:
    job_id: str
    submit_s: float
    duration_s: float
    gpus: int
    class_name: str
    user: str = ""


def demand_trace(
    name: str,
    jobs: Sequence[Job],
    snapshots: Iterable[Snapshot],
    *,
    since_s: float,
    now_s: float,
) -> Trace:
    """Return what people asked of a cluster.

    Args:
        name: What people call it.
        jobs: All of its ledger.
        snapshots: What its controller recorded, oldest first.
        since_s: Work that was asked for earlier is left out.
        now_s: What runs still is cut here.

    Raises:
        TraceError: There is nothing.
    """
    lost: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    with_gpus = [job for job in jobs if job.spec.gpus > 0]
    asked = list(_of_ledger(with_gpus, since_s, now_s, lost, notes))
    recent = (each for each in snapshots if each.now_s >= since_s)
    usage = usage_of(recent, with_gpus)
    for number, used in enumerate(usage.found, start=1):
        length_s = used.end_s - used.start_s
        asked.append(_Asked(f"ray-{number:06d}", used.submit_s, length_s, used.gpus, RAY_CLASS))
    if not asked:
        raise TraceError(
            "nothing was asked for GPUs in that time, as far as the ledger and the recorded "
            "decisions know; give a longer --since, and see controller.record"
        )
    zero_s = min(each.submit_s for each in asked)
    skipped = [
        *(Skipped(reason, count) for reason, count in (lost + usage.lost).items() if count),
        *(
            Skipped(reason, count, is_kept=True)
            for reason, count in (notes + usage.notes).items()
            if count
        ),
    ]
    found = (
        TraceJob(
            each.job_id,
            each.submit_s - zero_s,
            each.duration_s,
            each.gpus,
            each.class_name,
            each.user,
            is_checkpointable=False,
        )
        for each in asked
    )
    return Trace.of(name, found, tuple(skipped))


def _of_ledger(
    jobs: Iterable[Job],
    since_s: float,
    now_s: float,
    lost: Counter[str],
    notes: Counter[str],
) -> Iterable[_Asked]:
    for job in jobs:
        if job.created_at_s < since_s:
            continue
        if job.started_at_s is None:
            lost["a job that never started: nobody knows how long it would run"] += 1
            continue
        end_s = now_s if job.ended_at_s is None else job.ended_at_s
        if end_s <= job.started_at_s:
            lost["a job that ended when it started, by the ledger's clock"] += 1
            continue
        if job.ended_at_s is None:
            notes[CUT_END] += 1
        if job.spec.gpus != int(job.spec.gpus):
            notes["a share of a GPU, counted as a whole one"] += 1
        yield _Asked(
            job.job_id,
            job.created_at_s,
            end_s - job.started_at_s,
            math.ceil(job.spec.gpus),
            "batch",
            job.spec.user,
        )
