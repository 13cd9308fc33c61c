"""A trace made from a few numbers: what is always needed, and what is needed at the peak."""

from __future__ import annotations

import random
from collections.abc import Iterator

from pydantic import Field

from hybrid.core.models import Model
from hybrid.sim.traces.trace import DAY_S, Trace, TraceJob

_HOUR_S = 3_600.0
_SHORTEST_S = 60.0
_PEAK_FROM_H = 9.0


class Description(Model):
    """A demand in a few numbers.

    Attributes:
        steady_gpus: Needed at every hour.
        peak_gpus: Needed in all during the peak.
        peak_hours_per_day: How long that is; it begins at 9:00, or so early that it fits.
        peak_days_per_week: On how many days of a week, from Monday on.
        checkpointable: Share of the jobs that can be stopped and continued elsewhere.
        job_gpus: GPUs of one job.
        job_hours: How long a job runs on average: evenly between half and one and a half of it.
        weeks: How long the trace is.
        seed: Of the random draws.
    """

    steady_gpus: int = Field(ge=0, le=100_000)
    peak_gpus: int = Field(ge=1, le=100_000)
    peak_hours_per_day: float = Field(default=4.0, gt=0, le=24, allow_inf_nan=False)
    peak_days_per_week: int = Field(default=7, ge=1, le=7)
    checkpointable: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)
    job_gpus: int = Field(default=4, ge=1)
    job_hours: float = Field(default=6.0, ge=0.1, le=720, allow_inf_nan=False)
    weeks: int = Field(default=1, ge=1, le=52)
    seed: int = 0

    @property
    def period_s(self) -> float:
        """How long the trace is, seconds."""
        return self.weeks * 7 * DAY_S


def described(about: Description) -> Trace:
    """Return a trace that needs exactly what was described, if every job starts at once.

    Raises:
        ValueError: The peak is below what is always needed.
    """
    if about.peak_gpus < about.steady_gpus:
        raise ValueError(
            f"the peak of {about.peak_gpus} GPUs is below the {about.steady_gpus} that are always "
            "needed; peak_gpus is what is needed in all during the peak"
        )
    draw = random.Random(about.seed)
    jobs = list(_chains(about.steady_gpus, 0.0, about.period_s, "steady", about, draw))
    extra = about.peak_gpus - about.steady_gpus
    hours = about.peak_hours_per_day
    first_h = min(_PEAK_FROM_H, 24 - hours)
    for day in range(about.weeks * 7):
        if day % 7 < about.peak_days_per_week:
            from_s = day * DAY_S + first_h * _HOUR_S
            to_s = from_s + hours * _HOUR_S
            jobs += _chains(extra, from_s, to_s, f"peak-{day}", about, draw)
    name = (
        f"{about.steady_gpus} GPUs always, {about.peak_gpus} for {hours:g} h on "
        f"{about.peak_days_per_week} days a week"
    )
    trace = Trace.of(name, jobs)
    return trace.with_share(about.checkpointable, about.seed)


def _chains(
    gpus: int, from_s: float, to_s: float, name: str, about: Description, draw: random.Random
) -> Iterator[TraceJob]:
    """Yield jobs that follow one another, so that `gpus` are needed all the time."""
    whole, rest = divmod(gpus, about.job_gpus)
    for chain, size in enumerate([about.job_gpus] * whole + ([rest] if rest else [])):
        at_s, number = from_s, 0
        while at_s < to_s:
            length_s = draw.uniform(0.5, 1.5) * about.job_hours * _HOUR_S
            end_s = at_s + length_s
            if end_s > to_s - _SHORTEST_S:
                end_s = to_s
            yield TraceJob(f"{name}-{chain}-{number}", at_s, end_s - at_s, size)
            at_s, number = end_s, number + 1
