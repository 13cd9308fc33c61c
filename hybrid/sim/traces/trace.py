"""A trace of batch jobs: who asked for how many GPUs, when, and for how long.

The simulator and the bounds read this one form; `hybrid.sim.traces.importers` make it from
public formats and `hybrid.sim.traces.files` from our own.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

DAY_S = 86_400.0
SHOWN_ROW_COUNT = 5
"""How many lines a `Skipped` names; the rest is in its count."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job, as it would run alone at home.

    Attributes:
        job_id: Unique within its trace.
        submit_s: When it was asked for, in seconds from the start of the trace.
        duration_s: Useful seconds it needs at home speed, more than 0.
        gpus: GPUs it holds while it runs, at least 1.
        class_name: Its class of work, for which a policy may have its own promise.
        user: Who asked; a team or a virtual cluster where the source knows no more.
        is_checkpointable: Whether it can be stopped, and go on elsewhere.
        checkpoint_gb: Size of its checkpoint, in 10^9 bytes; 0 where the source says nothing.
    """

    job_id: str
    submit_s: float
    duration_s: float
    gpus: int
    class_name: str = "batch"
    user: str = ""
    is_checkpointable: bool = True
    checkpoint_gb: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no reader may let through.

        Raises:
            ValueError: A number is out of its bounds or not finite.
        """
        # Written so that NaN fails each of them.
        if not 0.0 <= self.submit_s < math.inf:
            raise ValueError(f"job {self.job_id}: submit_s is {self.submit_s}, not 0 or more")
        if not 0.0 < self.duration_s < math.inf:
            raise ValueError(f"job {self.job_id}: duration_s is {self.duration_s}, not above 0")
        if self.gpus < 1:
            raise ValueError(f"job {self.job_id}: gpus is {self.gpus}, not 1 or more")
        if not 0.0 <= self.checkpoint_gb < math.inf:
            raise ValueError(f"job {self.job_id}: checkpoint_gb is {self.checkpoint_gb}")

    @property
    def gpu_s(self) -> float:
        """Its work, in GPU-seconds."""
        return self.gpus * self.duration_s


@dataclass(frozen=True, slots=True)
class Skipped:
    """Rows of a source that became no job as they stand, and why.

    Attributes:
        reason: In words, such as `duration is not above 0`.
        count: How many rows.
        first_rows: Lines of the first of them; the header is line 1.
        is_kept: Whether they are jobs all the same, changed as the reason says.
    """

    reason: str
    count: int
    first_rows: tuple[int, ...] = ()
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs in the order in which they were asked for.

    Attributes:
        name: What people call it.
        jobs: Sorted by `(submit_s, job_id)`; no id twice.
        skipped: What of its source was not taken over as it stood, by reason.
    """

    name: str
    jobs: tuple[TraceJob, ...]
    skipped: tuple[Skipped, ...] = ()

    def __post_init__(self) -> None:
        """Check what everything downstream relies on.

        Raises:
            ValueError: The jobs are not sorted, or an id is there twice.
        """
        keys = ((job.submit_s, job.job_id) for job in self.jobs)
        if any(first > second for first, second in itertools.pairwise(keys)):
            raise ValueError(f"trace {self.name}: jobs are not sorted; use Trace.of")
        if len({job.job_id for job in self.jobs}) < len(self.jobs):
            raise ValueError(f"trace {self.name}: a job id is there twice")

    @classmethod
    def of(cls, name: str, jobs: Iterable[TraceJob], skipped: tuple[Skipped, ...] = ()) -> Trace:
        """Return a trace of jobs in any order."""
        ordered = sorted(jobs, key=lambda job: (job.submit_s, job.job_id))
        return cls(name, tuple(ordered), skipped)

    @property
    def gpu_s(self) -> float:
        """All its work, in GPU-seconds."""
        return math.fsum(job.gpu_s for job in self.jobs)

    @property
    def end_s(self) -> float:
        """When the last job would end if each started when it was asked for; 0 without jobs."""
        return max((job.submit_s + job.duration_s for job in self.jobs), default=0.0)

    def only(self, keep: Callable[[TraceJob], bool], name: str = "") -> Trace:
        """Return the jobs for which `keep` is true, under a new name if one is given."""
        return replace(self, name=name or self.name, jobs=tuple(filter(keep, self.jobs)))

    def window(self, from_day: float, to_day: float) -> Trace:
        """Return the jobs asked for in `[from_day, to_day)`, with `from_day` as the new start.

        Jobs that were asked for earlier and would still run are left out: a simulated cluster
        starts empty, as it does in the papers that use such windows.

        Raises:
            ValueError: The window is empty or begins before the trace.
        """
        if not 0.0 <= from_day < to_day:
            raise ValueError(f"no window from day {from_day:g} to day {to_day:g}")
        start_s, end_s = from_day * DAY_S, to_day * DAY_S
        jobs = tuple(
            replace(job, submit_s=job.submit_s - start_s)
            for job in self.jobs
            if start_s <= job.submit_s < end_s
        )
        return replace(self, name=f"{self.name} days {from_day:g}-{to_day:g}", jobs=jobs)

    def with_share(self, share: float, seed: int) -> Trace:
        """Return the same jobs, of which a random share can be checkpointed and no other.

        One draw of `random.Random(seed)` for each job in order; a job is checkpointable where
        its draw is below `share`. So a larger share of the same seed only adds jobs. (The first
        prototype drew from NumPy: same idea, other draws, so single figures differ a little.)

        Args:
            share: From 0 to 1.
            seed: Equal seeds give equal marks.

        Raises:
            ValueError: `share` is not from 0 to 1.
        """
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"share is {share}, not from 0 to 1")
        draw = random.Random(seed)
        jobs = tuple(
            # random() is below 1, so that a share of 1 is everyone.
            replace(job, is_checkpointable=draw.random() < share)
            for job in self.jobs
        )
        return replace(self, jobs=jobs)

    def scaled(self, *, pace: float = 1.0, length: float = 1.0) -> Trace:
        """Return the same jobs, more or less dense, or longer or shorter.

        Args:
            pace: Jobs come this many times as fast: times are divided by it.
            length: Durations are multiplied by it.

        Raises:
            ValueError: One of them is not above 0.
        """
        if not (0.0 < pace < math.inf and 0.0 < length < math.inf):
            raise ValueError(f"pace {pace} and length {length} must be above 0")
        return Trace.of(
            self.name,
            (
                replace(job, submit_s=job.submit_s / pace, duration_s=job.duration_s * length)
                for job in self.jobs
            ),
            self.skipped,
        )

    def fitting(self, most_gpus: int) -> Trace:
        """Return the jobs that a cluster can ever run; the others are counted as skipped.

        Args:
            most_gpus: The most GPUs that one job may hold: one node's, where a job cannot span
                nodes, or those of all nodes together, where it can.
        """
        big = [row for row, job in enumerate(self.jobs, start=1) if job.gpus > most_gpus]
        if not big:
            return self
        skipped = Skipped(
            f"more than {most_gpus} GPUs (rows are places in this trace)",
            len(big),
            tuple(big[:SHOWN_ROW_COUNT]),
        )
        jobs = tuple(job for job in self.jobs if job.gpus <= most_gpus)
        return replace(self, jobs=jobs, skipped=(*self.skipped, skipped))
