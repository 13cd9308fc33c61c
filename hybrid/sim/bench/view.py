"""The table of the benchmark, as JSON has it."""

from __future__ import annotations

from hybrid.core.models import Model
from hybrid.core.views import API_VERSION
from hybrid.sim.results import Quantiles


class BenchRow(Model):
    """One policy on one case, over all seeds: means of what adds up, the worst of the others.

    Attributes:
        case: Trace, size of the site, and promise.
        policy: A profile of the product, or a baseline as it was tuned.
        kind: A profile's name, or a baseline's kind.
        is_profile: Whether it is the product's own policy.
        tried: Points of the baseline's grid, on the first seed; 1 where it was not tuned.
        is_promise_kept: Whether 99.5 % of the jobs started in time, and, for a profile, 99.5 %
            of the work ended in time, with each seed.
        usd: Mean over the seeds.
        usd_by_seed: In the order of the seeds.
        bound_ratio: To LB-M(phi), the bound that is true of every policy that keeps the promise;
            null where that bound is 0.
        strict_bound_ratio: To LB-M at phi = 0. No bound where phi is more than 0: it may be
            below 1.
        captured_ratio: Share of what the tuned `ray` pays above LB-M at phi = 0 that was saved;
            null where `ray` pays no more.
        start_by_jobs, delay_by_jobs, delay_by_gpu_time: Shares in time; the least of the seeds.
        wait_s: The largest of the seeds.
        rented_gpu_h: Billed.
        idle_usd: Paid for GPUs without work, boots included.
        idle_ratio: The same as a share of what was billed.
        lock_in_gpu_h: Rented and with work while as many GPUs were free at home.
        lock_in_ratio: The same as a share of what was billed.
        flaps: Launches within 15 minutes after a return.
        moves: Moved, brought home and exchanged.
        most_interruptions: Of any one job, with any seed.
        over_quota_count: Jobs interrupted more often than the quota allows.
        decide_p50_s, decide_p99_s: Wall time of one decision; the largest of the seeds.
        wall_s: Of one run.
    """

    case: str
    policy: str
    kind: str
    is_profile: bool
    tried: int
    is_promise_kept: bool
    usd: float
    usd_by_seed: tuple[float, ...]
    bound_ratio: float | None
    strict_bound_ratio: float | None
    captured_ratio: float | None
    start_by_jobs: float
    delay_by_jobs: float
    delay_by_gpu_time: float
    wait_s: Quantiles
    rented_gpu_h: float
    idle_usd: float
    idle_ratio: float
    lock_in_gpu_h: float
    lock_in_ratio: float
    launches: float
    flaps: float
    suspensions: float
    moves: float
    most_interruptions: int
    over_quota_count: int
    decide_p50_s: float
    decide_p99_s: float
    wall_s: float


class BenchCase(Model):
    """What a case is, and what somebody who knows the future would pay.

    Attributes:
        trace: Its name.
        gpus: At home.
        jobs: How many.
        gpu_hours: All their work.
        late_share: Promised beside the longest wait (phi).
        checkpointable_ratio: Share of the jobs that can be stopped.
        bound_usd: LB-M(phi): true of every policy that keeps the promise.
        strict_bound_usd: LB-M at phi = 0.
    """

    case: str
    trace: str
    gpus: int
    jobs: int
    gpu_hours: float
    max_wait_s: float
    late_share: float
    checkpointable_ratio: float
    bound_usd: float
    strict_bound_usd: float


class BenchTarget(Model):
    """One of the project's own targets, and whether it was met.

    Attributes:
        what: The measure.
        limit: Not more than this, or not less where `is_least`.
        value: Measured; null where there was nothing to measure.
    """

    case: str
    policy: str
    what: str
    limit: float
    is_least: bool = False
    value: float | None
    is_met: bool


class BenchView(Model):
    """The benchmark.

    Attributes:
        seeds: Of boots and failures.
        is_tuned: Whether each baseline was run over its grid, and its best point taken.
        usd_per_gpu_hour: Price of a rented GPU.
        missing: Cases that could not be run, with why.
        wall_s: All of it took so long.
    """

    api_version: int = API_VERSION
    seeds: tuple[int, ...]
    is_tuned: bool
    usd_per_gpu_hour: float
    cases: tuple[BenchCase, ...]
    rows: tuple[BenchRow, ...]
    targets: tuple[BenchTarget, ...]
    missing: tuple[str, ...]
    wall_s: float
