"""What is in a trace, for people and programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from hybrid.core.models import Model
from hybrid.core.views import API_VERSION
from hybrid.sim.traces.opening import AnyTrace
from hybrid.sim.traces.rates import RateTrace
from hybrid.sim.traces.spots import SpotTrace
from hybrid.sim.traces.trace import DAY_S, Skipped, Trace

_LONG_S = DAY_S


class TraceSpreadView(Model):
    """How a number is spread.

    Attributes:
        p50: Half of all are at or below it.
        p90: Nine tenths are.
        p99: Ninety-nine hundredths are.
        largest: The largest.
    """

    p50: float
    p90: float
    p99: float
    largest: float


class TraceJobsView(Model):
    """Jobs of a trace.

    Attributes:
        jobs: How many.
        gpu_hours: All their work.
        users: How many people or teams asked.
        classes: Classes of work.
        checkpointable_ratio: Share of the work, by GPU-time, that can be checkpointed.
        duration_s: How durations are spread.
        gpus: How the GPUs of a job are spread.
        long_jobs_ratio: Share of the jobs that run for more than a day.
        long_work_ratio: Their share of the work.
        mean_gpus: GPUs that would be busy on average if each started at once.
        peak_gpus: The most that would be busy at a time.
    """

    jobs: int
    gpu_hours: float
    users: int
    classes: tuple[str, ...]
    checkpointable_ratio: float
    duration_s: TraceSpreadView
    gpus: TraceSpreadView
    long_jobs_ratio: float
    long_work_ratio: float
    mean_gpus: float
    peak_gpus: int


class TraceRatesView(Model):
    """Rates of a service.

    Attributes:
        windows: How many.
        mean_requests_per_s: The mean of all.
        requests_per_s: How the rates of windows are spread.
        mean_interarrival_cv: How much the times between requests vary, on average; 1 is Poisson.
    """

    windows: int
    mean_requests_per_s: float
    requests_per_s: TraceSpreadView
    mean_interarrival_cv: float


class TraceZoneView(Model):
    """A zone with spot instances.

    Attributes:
        zone: Its name.
        available_ratio: Share of the time in which any could be had.
        changes: How often that changed.
        most: The most that could be had; the source asked for no more.
    """

    zone: str
    available_ratio: float
    changes: int
    most: int


class TraceSkippedView(Model):
    """Lines that were not taken over as they stand.

    Attributes:
        reason: Why.
        count: How many.
        first_lines: The first of them.
        is_kept: Whether they are in the trace all the same, changed as the reason says.
    """

    reason: str
    count: int
    first_lines: tuple[int, ...]
    is_kept: bool


class TraceView(Model):
    """What is in a trace: of the three parts, the one that its kind says is there.

    Attributes:
        file: Where it is; `""` before it is written.
        name: What people call it.
        days: From its start to its end.
        skipped: What of the source was not taken over as it stood.
    """

    api_version: int = API_VERSION
    file: str = ""
    name: str
    kind: Literal["jobs", "rates", "spot"]
    days: float
    jobs: TraceJobsView | None = None
    rates: TraceRatesView | None = None
    zones: tuple[TraceZoneView, ...] | None = None
    skipped: tuple[TraceSkippedView, ...] = ()


def summary(trace: AnyTrace, file: str = "") -> TraceView:
    """Return what is in a trace."""
    days, skipped = trace.end_s / DAY_S, skipped_views(trace.skipped)
    match trace:
        case Trace():
            return TraceView(
                file=file,
                name=trace.name,
                kind="jobs",
                days=days,
                jobs=_jobs(trace),
                skipped=skipped,
            )
        case RateTrace():
            return TraceView(
                file=file,
                name=trace.name,
                kind="rates",
                days=days,
                rates=_rates(trace),
                skipped=skipped,
            )
        case SpotTrace():
            return TraceView(
                file=file,
                name=trace.name,
                kind="spot",
                days=days,
                zones=_zones(trace),
                skipped=skipped,
            )


def peak_gpus(trace: Trace) -> int:
    """Return the most GPUs that would be busy at a time if each job started at once."""
    edges = [(job.submit_s, job.gpus) for job in trace.jobs]
    edges += [(job.submit_s + job.duration_s, -job.gpus) for job in trace.jobs]
    busy = most = 0
    for _, change in sorted(edges):  # at one instant, those that end come before
        busy += change
        most = max(most, busy)
    return most


def _jobs(trace: Trace) -> TraceJobsView:
    jobs, work = trace.jobs, trace.gpu_s
    long = [job for job in jobs if job.duration_s > _LONG_S]
    return TraceJobsView(
        jobs=len(jobs),
        gpu_hours=work / 3_600,
        users=len({job.user for job in jobs}),
        classes=tuple(sorted({job.class_name for job in jobs})),
        checkpointable_ratio=_ratio(
            math.fsum(job.gpu_s for job in jobs if job.is_checkpointable), work
        ),
        duration_s=_spread(job.duration_s for job in jobs),
        gpus=_spread(float(job.gpus) for job in jobs),
        long_jobs_ratio=_ratio(len(long), len(jobs)),
        long_work_ratio=_ratio(math.fsum(job.gpu_s for job in long), work),
        mean_gpus=_ratio(work, trace.end_s),
        peak_gpus=peak_gpus(trace),
    )


def _rates(trace: RateTrace) -> TraceRatesView:
    windows = trace.windows
    return TraceRatesView(
        windows=len(windows),
        mean_requests_per_s=trace.mean_requests_per_s,
        requests_per_s=_spread(window.requests_per_s for window in windows),
        mean_interarrival_cv=_ratio(
            math.fsum(window.interarrival_cv for window in windows), len(windows)
        ),
    )


def _zones(trace: SpotTrace) -> tuple[TraceZoneView, ...]:
    return tuple(
        TraceZoneView(
            zone=zone.zone,
            available_ratio=zone.available_ratio,
            changes=len(zone.spans) - 1,
            most=max(span.available for span in zone.spans),
        )
        for zone in trace.zones
    )


def skipped_views(skipped: Sequence[Skipped]) -> tuple[TraceSkippedView, ...]:
    """Return what was not taken over, for people and programs."""
    return tuple(
        TraceSkippedView(
            reason=each.reason,
            count=each.count,
            first_lines=each.first_rows,
            is_kept=each.is_kept,
        )
        for each in skipped
    )


def _spread(values: Iterable[float]) -> TraceSpreadView:
    ordered = sorted(values)
    if not ordered:
        return TraceSpreadView(p50=0.0, p90=0.0, p99=0.0, largest=0.0)

    def at(share: float) -> float:
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    return TraceSpreadView(p50=at(0.5), p90=at(0.9), p99=at(0.99), largest=ordered[-1])


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
