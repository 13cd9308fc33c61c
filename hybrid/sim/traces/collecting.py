"""Puts jobs from the lines of a file together into a trace, and checks what spans lines."""

from __future__ import annotations

import math
from dataclasses import replace

from hybrid.sim.traces.reading import BadLineError, Tally, TraceError
from hybrid.sim.traces.trace import DAY_S, Trace, TraceJob

LONGEST_S = 3_650 * DAY_S
"""Ten years: a trace or a job that is longer has its times in mixed or other units."""
_CALENDAR_S = 1_000 * DAY_S
"""A trace that begins later than this has calendar times, which are counted from its first job."""


def job_of(
    job_id: str,
    submit_s: float,
    duration_s: float,
    gpus: int,
    *,
    user: str = "",
    class_name: str = "batch",
    is_checkpointable: bool = True,
    checkpoint_gb: float = 0.0,
) -> TraceJob:
    """Return a job of numbers as they stand in a file.

    Raises:
        BadLineError: One of them is out of bounds.
    """
    if submit_s < 0:
        raise BadLineError("the time of submission is below 0", str(submit_s))
    if duration_s <= 0:
        raise BadLineError("the duration is not above 0", str(duration_s))
    if duration_s > LONGEST_S:
        raise BadLineError("the duration is above ten years; in other units?", str(duration_s))
    if gpus < 1:
        raise BadLineError("it asks for no GPU", str(gpus))
    if checkpoint_gb < 0:
        raise BadLineError("the size of its checkpoint is below 0", str(checkpoint_gb))
    return TraceJob(
        job_id, submit_s, duration_s, gpus, class_name, user, is_checkpointable, checkpoint_gb
    )


class Collector:
    """Collects jobs, line by line.

    Args:
        file: Name of the file, for messages.
        tally: Counts what is not taken over as it stands.
    """

    def __init__(self, file: str, tally: Tally) -> None:
        self._file = file
        self._tally = tally
        self._jobs: list[TraceJob] = []
        self._ids: set[str] = set()
        self._first = (math.inf, 0)
        self._last = (-math.inf, 0)
        self._before_s = -math.inf

    def add(self, line: int, job: TraceJob) -> None:
        """Take a job; one whose id was there before is counted instead.

        Raises:
            TraceError: When strict, and something is wrong.
        """
        if job.job_id in self._ids:
            self._tally.skip(line, "its job id was there before", job.job_id)
            return
        if job.submit_s < self._before_s:
            self._tally.keep(line, "earlier than the line before; sorted", str(job.submit_s))
        self._before_s = job.submit_s
        self._first = min(self._first, (job.submit_s, line))
        self._last = max(self._last, (job.submit_s, line))
        self._ids.add(job.job_id)
        self._jobs.append(job)

    def trace(self, name: str, *, is_from_first_day: bool = False) -> Trace:
        """Return the trace.

        Args:
            name: What people call it.
            is_from_first_day: Count times from the midnight before the first job.

        Raises:
            TraceError: There is no job, or the times cannot be in one unit.
        """
        if not self._jobs:
            reasons = "; ".join(f"{each.count} x {each.reason}" for each in self._tally.result())
            raise TraceError(f"{self._file} has no job that can be used ({reasons or 'no lines'})")
        self._check_units()
        zero_s = 0.0
        if is_from_first_day:
            zero_s = math.floor(self._first[0] / DAY_S) * DAY_S
        elif self._first[0] > _CALENDAR_S:
            zero_s, line = self._first
            self._tally.keep(line, "calendar times; counted from the first job")
        jobs = self._jobs
        if zero_s:
            jobs = [replace(job, submit_s=job.submit_s - zero_s) for job in jobs]
        return Trace.of(name, jobs, self._tally.result())

    def _check_units(self) -> None:
        (first_s, first_line), (last_s, last_line) = self._first, self._last
        if last_s - first_s > LONGEST_S:
            years = (last_s - first_s) / DAY_S / 365
            raise TraceError(
                f"{self._file}, line {last_line}: submitted {years:,.0f} years after line "
                f"{first_line}; are these milliseconds, or seconds since 1970, amid others? "
                "Write all times in seconds from the start of the trace"
            )
