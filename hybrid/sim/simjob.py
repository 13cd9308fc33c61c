"""A job as the simulator keeps it: beside what the policy sees, what only the future knows."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.core.models import Demand
from hybrid.core.models.work import JobView
from hybrid.sim.params import SimParams
from hybrid.sim.traces.trace import TraceJob


@dataclass(slots=True)
class SimJob:
    """One job of the trace, from its arrival to its end.

    Attributes:
        view: What the policy sees.
        left_s: Useful seconds it still needs, as of the start of its present stretch.
        version: Counts its starts, so that an end that was overtaken by a stop is passed over.
        taken_at_s: When it got its present place.
        first_at_s: When it first ran.
        ended_at_s: When it was done.
    """

    trace: TraceJob
    view: JobView
    left_s: float
    version: int = 0
    taken_at_s: float = 0.0
    first_at_s: float | None = None
    ended_at_s: float | None = None
    suspension_count: int = 0
    move_count: int = 0
    home_count: int = 0
    exchange_count: int = 0
    rented_gpu_s: float = 0.0

    @property
    def interruption_count(self) -> int:
        """Times it was stopped, for whatever reason."""
        return self.suspension_count + self.move_count + self.home_count + self.exchange_count


def simulated(
    job: TraceJob, params: SimParams, units_by_gpus: dict[int, tuple[Demand, ...]]
) -> SimJob:
    """Return a job of the trace before it runs.

    Args:
        job: From the trace.
        params: Promises and checkpoints.
        units_by_gpus: Shared, so that equal jobs share their units.
    """
    if job.gpus not in units_by_gpus:
        units_by_gpus[job.gpus] = units_of(job.gpus, params.node_gpus)
    view = JobView(
        job_id=job.job_id,
        units=units_by_gpus[job.gpus],
        submitted_at_s=job.submit_s,
        max_wait_s=params.max_wait_by_class_s.get(job.class_name, params.max_wait_s),
        checkpoint=params.checkpoint if job.is_checkpointable else None,
    )
    return SimJob(trace=job, view=view, left_s=job.duration_s)


def units_of(gpus: int, node_gpus: int) -> tuple[Demand, ...]:
    """Return what must fit on one node each: whole nodes, and one part for the rest."""
    whole, rest = divmod(gpus, node_gpus)
    units = []
    if whole:
        units.append(Demand(shape={"GPU": float(node_gpus)}, count=whole))
    if rest:
        units.append(Demand(shape={"GPU": float(rest)}, count=1))
    return tuple(units)
