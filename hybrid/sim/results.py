"""What a run came to: money, promises kept, waits, interruptions, and the course of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from hybrid.core.models import Model
from hybrid.sim.engine import Engine
from hybrid.sim.simjob import SimJob

# A promise is kept to the microsecond: sums of floats.
_HAIR_S = 1e-6
_SLOWDOWN_FLOOR_S = 600.0


class Quantiles(Model):
    """Of a set of times, seconds; each is a time that occurred."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Quantiles:
        """Return the quantiles of at least one value; all 0 of none."""
        ordered = sorted(values) or [0.0]
        rows = [ordered[max(0, math.ceil(q * len(ordered)) - 1)] for q in (0.5, 0.95, 0.99)]
        return cls(p50=rows[0], p95=rows[1], p99=rows[2])


class Promises(Model):
    """Shares, 0 to 1, of what was in time.

    Attributes:
        start_by_jobs: First start within the longest wait.
        delay_by_jobs, delay_by_gpu_time: Ended later than it would have alone by at most the
            longest wait plus the late share of its run time; each job counts once, or by its
            work. Dropping a few large jobs cannot hide in the second.
        start_of_wide: As the first, for jobs of a whole node or more.
    """

    start_by_jobs: float
    delay_by_jobs: float
    delay_by_gpu_time: float
    start_of_wide: float


class Interruptions(Model):
    """How often work was stopped.

    Attributes:
        suspended: Back into the queue, so that other work got its place.
        packed: Moved at home, to make room in one piece.
        brought_home: From a rented node.
        exchanged: To a rented node, for a job that cannot move.
        most_of_one_job: The most any job had.
        over_quota_count: Jobs that had more than the policy's quota, by their whole run time.
        job_share: Share of jobs that had one or more.
    """

    suspended: int
    packed: int
    brought_home: int
    exchanged: int
    most_of_one_job: int
    over_quota_count: int
    job_share: float


class Point(Model):
    """The cluster at one moment; GPUs, except where said."""

    at_s: float
    home_busy: float
    rented: float
    rented_busy: float
    queued: float
    usd: float


class SimResult(Model):
    """One run. Everything but `decide_*` and `wall_s` is the same on each machine.

    Attributes:
        usd: Money for rented nodes, boots and idle time included.
        usd_by_reason: By why the nodes were launched.
        rented_gpu_h: Billed GPU-hours.
        idle_gpu_h: Those of them without work, boots included.
        lock_in_gpu_h: Rented and with work while as many GPUs were free at home.
        launches, failed, cancelled: Requests for nodes; without capacity; ended while booting.
        flaps: Launches within 15 minutes after a node was returned.
        bounded_slowdown: Mean of time in the system over run time, of at least 10 minutes.
        home_busy_share: Share of the GPU-time at home that had work, until the last job ended.
    """

    trace: str
    policy: str
    gpus: int
    seed: int
    job_count: int
    usd: float
    usd_by_reason: dict[str, float] = Field(default_factory=dict)
    rented_gpu_h: float
    idle_gpu_h: float
    lock_in_gpu_h: float
    launches: int
    failed: int
    cancelled: int
    flaps: int
    wait_s: Quantiles
    wide_wait_s: Quantiles
    promises: Promises
    interruptions: Interruptions
    bounded_slowdown: float
    home_busy_share: float
    decide_p50_s: float
    decide_p99_s: float
    decide_count: int
    wall_s: float
    series: tuple[Point, ...] = ()


def result_of(engine: Engine, *, wall_s: float) -> SimResult:
    """Return the result of an engine that has run to its end.

    Args:
        engine: After `run`.
        wall_s: How long that took.
    """
    jobs = list(engine.jobs.values())
    wide = [job for job in jobs if job.trace.gpus >= engine.params.node_gpus]
    end_s = max((job.ended_at_s or 0.0 for job in jobs), default=0.0)
    decide_s = Quantiles.of(engine.decide_s)
    slowdowns = [_jct_s(j) / max(j.trace.duration_s, _SLOWDOWN_FLOOR_S) for j in jobs]
    home_s = engine.params.gpus * end_s
    return SimResult(
        trace=engine.trace.name,
        policy=engine.policy.name,
        gpus=engine.params.gpus,
        seed=engine.params.seed,
        job_count=len(jobs),
        usd=engine.bill.usd,
        usd_by_reason=dict(sorted(engine.bill.usd_by_reason.items())),
        rented_gpu_h=engine.bill.gpu_s / 3600,
        idle_gpu_h=(engine.bill.gpu_s - engine.cloud_gpu_s) / 3600,
        lock_in_gpu_h=engine.lock_in_gpu_s / 3600,
        launches=engine.launches.count,
        failed=engine.launches.failed,
        cancelled=engine.launches.cancelled,
        flaps=engine.launches.flaps,
        wait_s=Quantiles.of([_wait_s(job) for job in jobs]),
        wide_wait_s=Quantiles.of([_wait_s(job) for job in wide]),
        promises=_promises(jobs, wide, engine),
        interruptions=_interruptions(jobs, engine),
        bounded_slowdown=_mean(slowdowns),
        home_busy_share=engine.home_gpu_s / home_s if home_s else 0.0,
        decide_p50_s=decide_s.p50,
        decide_p99_s=decide_s.p99,
        decide_count=len(engine.decide_s),
        wall_s=wall_s,
        series=tuple(
            Point(at_s=a, home_busy=h, rented=r, rented_busy=b, queued=q, usd=u)
            for a, h, r, b, q, u in engine.samples
        ),
    )


def _promises(jobs: list[SimJob], wide: list[SimJob], engine: Engine) -> Promises:
    share = engine.params.late_share
    late = [j for j in jobs if _jct_s(j) - j.trace.duration_s > _allowed_s(j, share)]
    work = math.fsum(job.trace.gpu_s for job in jobs)
    late_work = math.fsum(job.trace.gpu_s for job in late)
    return Promises(
        start_by_jobs=_share_in_time(jobs),
        delay_by_jobs=1 - len(late) / len(jobs) if jobs else 1.0,
        delay_by_gpu_time=1 - late_work / work if work else 1.0,
        start_of_wide=_share_in_time(wide),
    )


def _interruptions(jobs: list[SimJob], engine: Engine) -> Interruptions:
    rules = engine.policy.jobs
    over = sum(
        job.interruption_count
        > rules.interruptions + job.trace.duration_s / rules.interruption_earn_s
        for job in jobs
    )
    return Interruptions(
        suspended=sum(job.suspension_count for job in jobs),
        packed=sum(job.move_count for job in jobs),
        brought_home=sum(job.home_count for job in jobs),
        exchanged=sum(job.exchange_count for job in jobs),
        most_of_one_job=max((job.interruption_count for job in jobs), default=0),
        over_quota_count=over,
        job_share=_mean([float(job.interruption_count > 0) for job in jobs]),
    )


def _share_in_time(jobs: list[SimJob]) -> float:
    in_time = sum(_wait_s(job) <= job.view.max_wait_s + _HAIR_S for job in jobs)
    return in_time / len(jobs) if jobs else 1.0


def _allowed_s(job: SimJob, late_share: float) -> float:
    return job.view.max_wait_s + late_share * job.trace.duration_s + _HAIR_S


def _wait_s(job: SimJob) -> float:
    return math.inf if job.first_at_s is None else job.first_at_s - job.trace.submit_s


def _jct_s(job: SimJob) -> float:
    return math.inf if job.ended_at_s is None else job.ended_at_s - job.trace.submit_s


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
