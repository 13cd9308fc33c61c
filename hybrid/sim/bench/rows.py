"""From runs to rows of the table, and from rows to targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hybrid.sim.baselines.tuning import START_PROMISE, keeps_promise
from hybrid.sim.bench.cases import Case
from hybrid.sim.bench.view import BenchCase, BenchRow, BenchTarget
from hybrid.sim.params import A100_USD_PER_HOUR
from hybrid.sim.results import Quantiles, SimResult
from hybrid.sim.traces.trace import Trace

DELAY_PROMISE = 0.995
"""Share of the work that must end in time."""


@dataclass(frozen=True)
class Ran:
    """The runs of one policy on one case, one for each seed."""

    case: str
    kind: str
    results: tuple[SimResult, ...]
    is_profile: bool = False
    tried: int = 1


def case_view(case: Case, trace: Trace) -> BenchCase:
    """Return a case with its bounds."""
    from hybrid.sim.bounds.migratable import least_rented_gpu_s
    from hybrid.sim.bounds.work import Work

    params, work = case.params(0), Work.of(trace)

    def least_usd(late_share: float) -> float:
        gpu_s = least_rented_gpu_s(
            work, case.gpus, max_wait_s=params.max_wait_s, late_share=late_share
        )
        return gpu_s / 3600 * params.usd_per_gpu_hour

    movable = sum(job.is_checkpointable for job in trace.jobs)
    return BenchCase(
        case=case.name,
        trace=trace.name,
        gpus=case.gpus,
        jobs=len(trace.jobs),
        gpu_hours=trace.gpu_s / 3600,
        max_wait_s=params.max_wait_s,
        late_share=case.late_share,
        checkpointable_ratio=movable / max(1, len(trace.jobs)),
        bound_usd=least_usd(case.late_share),
        strict_bound_usd=least_usd(0.0),
    )


def row(case: BenchCase, ran: Ran, ray_usd: float | None) -> BenchRow:
    """Return a row of the table.

    Args:
        case: With its bounds.
        ran: What the row is about; of a case with the same baselines.
        ray_usd: Mean cost of the tuned `ray`, which savings are measured against.
    """
    runs = ran.results
    usd = _mean(runs, lambda run: run.usd)
    billed_gpu_h = _mean(runs, lambda run: run.rented_gpu_h)
    idle_gpu_h = _mean(runs, lambda run: run.idle_gpu_h)
    lock_in_gpu_h = _mean(runs, lambda run: run.lock_in_gpu_h)
    return BenchRow(
        case=case.case,
        policy=runs[0].policy,
        kind=ran.kind,
        is_profile=ran.is_profile,
        tried=ran.tried,
        is_promise_kept=all(_keeps(run, is_profile=ran.is_profile) for run in runs),
        usd=usd,
        usd_by_seed=tuple(run.usd for run in runs),
        bound_ratio=_ratio(usd, case.bound_usd),
        strict_bound_ratio=_ratio(usd, case.strict_bound_usd),
        captured_ratio=_captured(usd, ray_usd, case.strict_bound_usd),
        start_by_jobs=min(run.promises.start_by_jobs for run in runs),
        delay_by_jobs=min(run.promises.delay_by_jobs for run in runs),
        delay_by_gpu_time=min(run.promises.delay_by_gpu_time for run in runs),
        wait_s=_worst([run.wait_s for run in runs]),
        rented_gpu_h=billed_gpu_h,
        idle_usd=idle_gpu_h * A100_USD_PER_HOUR,
        idle_ratio=idle_gpu_h / billed_gpu_h if billed_gpu_h else 0.0,
        lock_in_gpu_h=lock_in_gpu_h,
        lock_in_ratio=lock_in_gpu_h / billed_gpu_h if billed_gpu_h else 0.0,
        launches=_mean(runs, lambda run: run.launches),
        flaps=_mean(runs, lambda run: run.flaps),
        suspensions=_mean(runs, lambda run: run.interruptions.suspended),
        moves=_mean(runs, _moves),
        most_interruptions=max(run.interruptions.most_of_one_job for run in runs),
        over_quota_count=max(run.interruptions.over_quota_count for run in runs),
        decide_p50_s=max(run.decide_p50_s for run in runs),
        decide_p99_s=max(run.decide_p99_s for run in runs),
        wall_s=_mean(runs, lambda run: run.wall_s),
    )


def targets(case: Case, rows: Sequence[BenchRow], rivals: Sequence[BenchRow]) -> list[BenchTarget]:
    """Return the targets that the profiles' rows of a case can be held to.

    Args:
        case: What it is.
        rows: Of the profiles.
        rivals: Of the baselines.
    """
    found = []
    rival_usd = min((each.usd for each in rivals if each.is_promise_kept), default=None)
    for each in rows:
        if each.kind in case.most_usd:
            found.append(_at_most(each, "usd", each.usd, case.most_usd[each.kind]))
        if rival_usd is not None:
            found.append(_at_most(each, "usd, of the best baseline", each.usd, rival_usd))
        found += _promises(each)
        if case.name == "philly-640":
            found.append(_at_most(each, "idle_ratio", each.idle_ratio, 0.07))
            found.append(_at_most(each, "lock_in_ratio", each.lock_in_ratio, 0.03))
            for kind, limit_s in (("balanced", 360.0), ("fast", 300.0)):
                if each.kind == kind:
                    found.append(_at_most(each, "p95 of wait_s", each.wait_s.p95, limit_s))
        if case.name == "philly-768" and each.kind == "balanced":
            found.append(_at_least(each, "captured_ratio", each.captured_ratio, 0.97))
        found.append(_at_most(each, "over_quota_count", each.over_quota_count, 0))
    return found


def _promises(each: BenchRow) -> list[BenchTarget]:
    return [
        _at_least(each, "start_by_jobs", each.start_by_jobs, START_PROMISE),
        _at_least(each, "delay_by_gpu_time", each.delay_by_gpu_time, DELAY_PROMISE),
    ]


def _at_most(each: BenchRow, what: str, value: float, limit: float) -> BenchTarget:
    return BenchTarget(
        case=each.case,
        policy=each.kind,
        what=what,
        limit=limit,
        value=value,
        is_met=value <= limit,
    )


def _at_least(each: BenchRow, what: str, value: float | None, limit: float) -> BenchTarget:
    return BenchTarget(
        case=each.case,
        policy=each.kind,
        what=what,
        limit=limit,
        is_least=True,
        value=value,
        is_met=value is not None and value >= limit,
    )


def _keeps(run: SimResult, *, is_profile: bool) -> bool:
    is_started = keeps_promise(run)
    return is_started and (not is_profile or run.promises.delay_by_gpu_time >= DELAY_PROMISE)


def _moves(run: SimResult) -> float:
    stops = run.interruptions
    return stops.packed + stops.brought_home + stops.exchanged


def _captured(usd: float, ray_usd: float | None, bound_usd: float) -> float | None:
    possible = 0.0 if ray_usd is None else ray_usd - bound_usd
    return None if possible <= 0 else 1 - (usd - bound_usd) / possible


def _ratio(usd: float, bound_usd: float) -> float | None:
    return usd / bound_usd if bound_usd > 0 else None


def _worst(waits: Sequence[Quantiles]) -> Quantiles:
    return Quantiles(
        p50=max(each.p50 for each in waits),
        p95=max(each.p95 for each in waits),
        p99=max(each.p99 for each in waits),
    )


def _mean(runs: Sequence[SimResult], of: Callable[[SimResult], float]) -> float:
    return math.fsum(of(run) for run in runs) / len(runs)
