"""The targets of services on real traces, which are never committed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid.core.policy.services import ServiceParams
from hybrid.sim.services.arrivals import arrivals
from hybrid.sim.services.driven import PolicyScaler
from hybrid.sim.services.hpa import Hpa, HpaTuning
from hybrid.sim.services.opening import days_of, open_rates
from hybrid.sim.services.outcome import ServiceOutcome
from hybrid.sim.services.params import ServiceSimParams
from hybrid.sim.services.play import Scaler, play
from hybrid.sim.services.world import Orders
from hybrid.sim.traces.rates import RateTrace
from tests.sim.realtraces import real_trace

M_LARGE = "inference/servegen_m-large_rate.csv.gz"
PROTOTYPES_HPA = HpaTuning(0.74, "busy", 60.0, 300.0)
BEST_HPA = HpaTuning(0.82, "queue", 60.0, 600.0)
"""The cheapest point of the grid with 99 % in time at seed 0; see docs/benchmarks.md."""


def played(days: tuple[float, float], params: ServiceSimParams) -> dict[str, ServiceOutcome]:
    trace = days_of(open_rates(str(real_trace(M_LARGE)), None), *days)
    counts = arrivals(trace, params)
    scalers: dict[str, Scaler] = {
        "policy": PolicyScaler(params, ServiceParams()),
        "prototype": Hpa(params, PROTOTYPES_HPA),
        "best": Hpa(params, BEST_HPA),
    }
    return {name: play(counts, scaler, params) for name, scaler in scalers.items()}


@pytest.mark.slow
def test_the_second_week_which_nothing_was_tuned_on_meets_the_target() -> None:
    results = played((7, 14), ServiceSimParams())

    policy, best = results["policy"], results["best"]
    # the aim is 99.9 %, and how boots happen to be drawn moves it by 0.03: docs/benchmarks.md
    assert policy.slo_ratio >= 0.998
    assert policy.usd <= 0.64 * results["prototype"].usd
    assert policy.usd <= 0.64 * best.usd


@pytest.mark.slow
def test_requests_of_azure_are_served_in_time() -> None:
    trace = open_rates(str(real_trace("inference/azure_llm_2023_conv.csv.gz")), None)
    params = ServiceSimParams(home=1, borrowable=4)

    result = play(arrivals(trace, params), PolicyScaler(params, ServiceParams()), params)

    assert result.slo_ratio >= 0.99


@pytest.mark.slow
def test_another_fourth_day_changes_nothing_that_was_ordered_in_the_first_three() -> None:
    params = ServiceSimParams(borrowable=16, shape="steps")
    trace = days_of(open_rates(str(real_trace(M_LARGE)), None), 0, 3.2)
    cut_s = 3 * 86_400.0
    other = replace(
        trace,
        windows=tuple(
            replace(window, requests_per_s=2 * window.requests_per_s)
            if window.start_s >= cut_s
            else window
            for window in trace.windows
        ),
    )

    def orders(of: RateTrace) -> list[Orders]:
        found: list[Orders] = []
        counts = arrivals(of, params)
        scaler = PolicyScaler(params, ServiceParams())
        play(counts, scaler, params, on_orders=lambda _, orders: found.append(orders))
        return found

    one, two = orders(trace), orders(other)

    cut = round(cut_s / params.tick_s)
    assert one[:cut] == two[:cut]
    assert one != two
