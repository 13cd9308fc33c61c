"""The policy against every baseline, each at the best point of its own grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hybrid.core.models import Model
from hybrid.core.policy.services import ServiceParams
from hybrid.sim.services.arrivals import arrivals
from hybrid.sim.services.bound import fluid_bound_gpu_h
from hybrid.sim.services.driven import PolicyScaler
from hybrid.sim.services.hpa import Hpa, Keda, hpa_grid, keda_grid
from hybrid.sim.services.outcome import ServiceOutcome
from hybrid.sim.services.params import ServiceSimParams
from hybrid.sim.services.play import Scaler, play
from hybrid.sim.traces.rates import RateTrace

GOALS = (0.99, 0.999)
"""Shares of requests in time at which a baseline is compared."""

OnPhase = Callable[[str], None]


class Baseline(Model):
    """The cheapest point of a baseline that reaches a goal.

    Attributes:
        name: `hpa`, `keda`, or `hpa+loans`: the first with loans, which no such autoscaler has.
        goal_ratio: Share of requests that must be in time.
        tried: Points of its grid.
        outcome: Of the cheapest; `None` when no point reaches the goal.
        most_slo_ratio: The highest share that any of its points reached.
        policy_usd_ratio: What the policy costs, over this; `None` without such a point.
    """

    name: str
    goal_ratio: float
    tried: int
    outcome: ServiceOutcome | None
    most_slo_ratio: float
    policy_usd_ratio: float | None


class ServiceComparison(Model):
    """Everything about one trace and seed.

    Attributes:
        trace: Its name.
        days: Its length.
        mean_rps: The mean rate, after scaling.
        params: The simulated service.
        policy_params: The thresholds.
        policy: What the policy came to.
        baselines: The best points, empty when they were not asked for.
        bound_usd: What even somebody who knows the future pays for all requests in time.
    """

    trace: str
    days: float
    mean_rps: float
    params: ServiceSimParams
    policy_params: ServiceParams
    policy: ServiceOutcome
    baselines: tuple[Baseline, ...]
    bound_usd: float


def compare(
    trace: RateTrace,
    params: ServiceSimParams,
    policy: ServiceParams,
    *,
    with_baselines: bool = True,
    on_phase: OnPhase = lambda _phase: None,
) -> ServiceComparison:
    """Return what the policy and the baselines come to on one trace.

    Args:
        trace: The rates.
        params: The simulated service.
        policy: The thresholds.
        with_baselines: Whether to try the grids, which takes most of the time.
        on_phase: Is told what goes on.
    """
    counts = arrivals(trace, params)
    ours = play(
        counts,
        PolicyScaler(params, policy),
        params,
        on_part=lambda part: on_phase(f"policy, {_tenths(part)}"),
    )
    baselines: list[Baseline] = []
    for name, grid in _grids(params) if with_baselines else ():
        tried = _tried(name, grid, counts, params, on_phase)
        baselines += [_best(name, goal, tried, ours) for goal in GOALS]
    hours = len(counts) * params.tick_s / 3600
    return ServiceComparison(
        trace=trace.name,
        days=hours / 24,
        mean_rps=sum(counts) / (hours * 3600) if hours else 0.0,
        params=params,
        policy_params=policy,
        policy=ours,
        baselines=tuple(baselines),
        bound_usd=fluid_bound_gpu_h(counts, params) * params.usd_per_gpu_hour,
    )


def _grids(params: ServiceSimParams) -> Iterator[tuple[str, Sequence[Scaler]]]:
    yield "hpa", [Hpa(params, tuning) for tuning in hpa_grid()]
    yield "keda", [Keda(params, tuning) for tuning in keda_grid()]
    if params.borrowable:
        yield (
            "hpa+loans",
            [Hpa(params, tuning, name="hpa+loans", borrows=True) for tuning in hpa_grid()],
        )


def _tried(
    name: str,
    grid: Sequence[Scaler],
    counts: Sequence[int],
    params: ServiceSimParams,
    on_phase: OnPhase,
) -> list[ServiceOutcome]:
    found: list[ServiceOutcome] = []
    for place, scaler in enumerate(grid):
        on_phase(f"{name}, {_tenths(place / len(grid))}")
        found.append(play(counts, scaler, params))
    return found


def _tenths(part: float) -> str:
    return f"{int(part * 10) * 10} %"


def _best(
    name: str, goal: float, tried: Sequence[ServiceOutcome], ours: ServiceOutcome
) -> Baseline:
    good = [each for each in tried if each.slo_ratio >= goal]
    best = min(good, key=lambda each: (each.usd, -each.slo_ratio), default=None)
    return Baseline(
        name=name,
        goal_ratio=goal,
        tried=len(tried),
        outcome=best,
        most_slo_ratio=max(each.slo_ratio for each in tried),
        policy_usd_ratio=ours.usd / best.usd if best is not None and best.usd > 0 else None,
    )
