"""All bounds of a trace in one answer, each with the policies that it is a bound for."""

from __future__ import annotations

from collections.abc import Callable

from hybrid.core.models import Model
from hybrid.core.quantity import duration_text
from hybrid.core.views import API_VERSION
from hybrid.sim.bounds import feasible, migratable, rigid
from hybrid.sim.bounds.work import Work
from hybrid.sim.traces.trace import Trace


class BoundView(Model):
    """One bound.

    Attributes:
        name: `LB-M`, `LB-M(phi)`, `LB-N` or `UB`.
        is_lower: Whether nobody can pay less; else somebody who knows the future need not pay more.
        gpu_hours: Rented GPU-hours.
        usd: The same at the price that was given.
        work_ratio: The same as a share of all work of the trace, from 0 to 1.
        holds_for: The policies that it is a bound for.
    """

    name: str
    is_lower: bool
    gpu_hours: float
    usd: float
    work_ratio: float
    holds_for: str


class BoundsView(Model):
    """What a trace must cost at the least, and at the most for somebody who knows the future.

    Attributes:
        trace: Its name.
        gpus: GPUs at home.
        max_wait_s: How late a job may start, or end.
        late_share: How much later it may end, in shares of its run time (phi).
        usd_per_gpu_hour: The price.
        gpu_hours: All work of the trace.
        jobs: How many there are.
        bounds: The strictest promise first.
    """

    api_version: int = API_VERSION
    trace: str
    gpus: int
    max_wait_s: float
    late_share: float
    usd_per_gpu_hour: float
    jobs: int
    gpu_hours: float
    bounds: tuple[BoundView, ...]


def bounds(
    trace: Trace,
    gpus: int,
    *,
    max_wait_s: float,
    late_share: float,
    usd_per_gpu_hour: float,
    on_phase: Callable[[str], None] | None = None,
) -> BoundsView:
    """Return all bounds of a trace.

    Args:
        trace: The jobs.
        gpus: GPUs at home.
        max_wait_s: How late a job may start, or end.
        late_share: How much later it may end, in shares of its run time.
        usd_per_gpu_hour: What a rented GPU costs.
        on_phase: Is told what goes on.
    """
    say = on_phase or _silent
    work = Work.of(trace)
    total = work.total_gpu_s

    def view(name: str, gpu_s: float, holds_for: str, *, is_lower: bool = True) -> BoundView:
        return BoundView(
            name=name,
            is_lower=is_lower,
            gpu_hours=gpu_s / 3_600,
            usd=gpu_s / 3_600 * usd_per_gpu_hour,
            work_ratio=gpu_s / total if total else 0.0,
            holds_for=holds_for,
        )

    def climbing(number: int, _best: float) -> None:
        if number % 100 == 0:
            say(f"LB-N, round {number}")

    wait = duration_text(max_wait_s)
    say("LB-M")
    strict = migratable.least_rented_gpu_s(work, gpus, max_wait_s=max_wait_s)
    loose = migratable.least_rented_gpu_s(work, gpus, max_wait_s=max_wait_s, late_share=late_share)
    say("LB-N")
    whole = rigid.least_rented_gpu_s(work, gpus, max_wait_s=max_wait_s, on_round=climbing)
    plan = feasible.cheapest_plan(work, gpus, max_wait_s=max_wait_s, on_phase=say)
    return BoundsView(
        trace=trace.name,
        gpus=gpus,
        max_wait_s=max_wait_s,
        late_share=late_share,
        usd_per_gpu_hour=usd_per_gpu_hour,
        jobs=work.count,
        gpu_hours=total / 3_600,
        bounds=(
            view("LB-N", whole, f"no job interrupted or moved, each starts within {wait}"),
            view("LB-M", strict, f"jobs may move; none ends more than {wait} late"),
            view(
                "LB-M(phi)",
                loose,
                f"jobs may move; none ends later than {wait} and {late_share:g} of its run time",
            ),
            view(
                "UB",
                plan.rented_gpu_s,
                f"a plan with knowledge of the future: no job moved, each starts within {wait}",
                is_lower=False,
            ),
        ),
    )


def allowing_missed(lower_gpu_s: float, total_gpu_s: float, missed_share: float) -> float:
    """Return what is left of a lower bound when some of the work may break the promise.

    Renting all of the work that breaks it never costs more than that work, so the bound of the
    rest is at most that much lower. True for LB-M and LB-N alike.

    Args:
        lower_gpu_s: A lower bound under which every job keeps the promise.
        total_gpu_s: All work.
        missed_share: Share of the work, by GPU-time, whose jobs may break it, from 0 to 1.

    Returns:
        GPU-seconds, 0 or more.
    """
    return max(0.0, lower_gpu_s - missed_share * total_gpu_s)


def captured_ratio(cost: float, baseline_cost: float, lower: float) -> float | None:
    """Return which share of what could be saved on a baseline was saved.

    1 is the bound, 0 the baseline; above 1 where `lower` is no bound for the policy in question.
    `None` where there was nothing to save.
    """
    possible = baseline_cost - lower
    return (baseline_cost - cost) / possible if possible > 0 else None


def _silent(_phase: str) -> None:
    pass
