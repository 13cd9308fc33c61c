"""What a simulated service cost, and how long its requests waited."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.core.models import Model
from hybrid.sim.services.params import ServiceSimParams
from hybrid.sim.services.world import World


class ServiceOutcome(Model):
    """The result of one run.

    Attributes:
        name: Who decided.
        settings: Its tuning.
        arrived, served, waiting: Requests; the last at the end of the run.
        slo_ratio: Share of the requests that were served in time. What still waits counts as
            late.
        prompt_ratio: Share that was served in the tick in which it came.
        wait_p50_s, wait_p95_s, wait_p99_s, wait_max_s: Waits in whole ticks, of those served.
        usd: Rented and borrowed together.
        rented_usd, borrowed_usd: Its parts.
        rented_gpu_h, borrowed_gpu_h: Billed hours; those of loans with their overhead.
        idle_gpu_h: Of both, while they served nothing.
        launches, failures, loans, flaps: Counts.
    """

    name: str
    settings: Mapping[str, float | str] = {}
    arrived: int
    served: float
    waiting: float
    slo_ratio: float
    prompt_ratio: float
    wait_p50_s: float
    wait_p95_s: float
    wait_p99_s: float
    wait_max_s: float
    usd: float
    rented_usd: float
    borrowed_usd: float
    rented_gpu_h: float
    borrowed_gpu_h: float
    idle_gpu_h: float
    launches: int
    failures: int
    loans: int
    flaps: int


def outcome(
    name: str, world: World, params: ServiceSimParams, settings: Mapping[str, float | str]
) -> ServiceOutcome:
    """Return the result of a world that is closed."""
    price = params.usd_per_gpu_hour / 3600
    total = max(1, world.arrived)
    on_time = sum(
        count
        for wait, count in world.waits.items()
        if wait * params.tick_s <= params.wait_slo_s + 1e-9
    )
    served = sum(world.waits.values())
    p50, p95, p99, most = (_quantile_s(world, params, q) for q in (0.5, 0.95, 0.99, 1.0))
    return ServiceOutcome(
        name=name,
        settings=settings,
        arrived=world.arrived,
        served=served,
        waiting=world.backlog,
        slo_ratio=on_time / total if world.arrived else 1.0,
        prompt_ratio=world.waits.get(0, 0.0) / total if world.arrived else 1.0,
        wait_p50_s=p50,
        wait_p95_s=p95,
        wait_p99_s=p99,
        wait_max_s=most,
        usd=(world.rent_s + world.loan_s) * price,
        rented_usd=world.rent_s * price,
        borrowed_usd=world.loan_s * price,
        rented_gpu_h=world.rent_s / 3600,
        borrowed_gpu_h=world.loan_s / 3600,
        idle_gpu_h=world.idle_s / 3600,
        launches=world.launches,
        failures=world.failures,
        loans=world.loans,
        flaps=world.flaps,
    )


def _quantile_s(world: World, params: ServiceSimParams, share: float) -> float:
    wanted, so_far = share * sum(world.waits.values()) - 1e-6, 0.0
    for wait in sorted(world.waits):
        so_far += world.waits[wait]
        if so_far >= wanted:
            return wait * params.tick_s
    return 0.0
