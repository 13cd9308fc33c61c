"""A simulated service: worked out by hand, conserved, and the same for the same seed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.policy.services import ServiceParams
from hybrid.sim.params import Boot
from hybrid.sim.services.arrivals import arrivals
from hybrid.sim.services.bound import fluid_bound_gpu_h
from hybrid.sim.services.compare import compare
from hybrid.sim.services.driven import PolicyScaler
from hybrid.sim.services.hpa import Hpa, HpaTuning, Keda
from hybrid.sim.services.params import ServiceSimParams
from hybrid.sim.services.play import play
from hybrid.sim.services.world import Orders, Seen, World
from hybrid.sim.traces.rates import RateTrace, RateWindow

EXACT = Boot(alloc_s=30.0, median_s=120.0, sigma=0.0, least_s=60.0, fail_share=0.0)


def params_of(**changes: object) -> ServiceSimParams:
    values: dict[str, object] = {
        "home": 1,
        "borrowable": 4,
        "replica_rps": 1.0,
        "usd_per_gpu_hour": 3.6,
        "boot": EXACT,
    }
    return ServiceSimParams.model_validate(values | changes)


def trace_of(*rates: float, cv: float = 1.0) -> RateTrace:
    return RateTrace("t", tuple(RateWindow(600.0 * n, 600.0, r, cv) for n, r in enumerate(rates)))


class Script:
    """Orders that were written down before, by tick."""

    name = "script"

    def __init__(self, orders: dict[int, Orders]) -> None:
        self.settings: dict[str, float | str] = {}
        self._orders = orders

    def decide(self, seen: Seen) -> Orders:
        return self._orders.get(round(seen.now_s / 10) - 1, Orders())


def test_a_small_case_comes_to_what_one_works_out_by_hand() -> None:
    # one replica serves 10 requests a tick. 30 come in tick 0, and after it a loan is asked for:
    # it serves from tick 5 on. A replica rented then serves 150 s later, and goes after tick 19.
    script = Script(
        {0: Orders(loans=1, rents=1), 9: Orders(loans=-1), 19: Orders(rents=-1)},
    )

    result = play([30, *[10] * 19], script, params_of())

    assert result.arrived == 220
    assert result.served == 220
    # ten a tick are served: of tick 0 in ticks 0, 1 and 2, then those of 1 and 2 two ticks late.
    # Twenty in tick 5 (those of 3 two ticks late, of 4 one) and in 6 (of 5 one late, of 6 at once)
    assert result.prompt_ratio == pytest.approx(150 / 220)
    assert result.slo_ratio == pytest.approx(180 / 220)
    assert result.wait_max_s == 20.0
    # 9 ticks of 10 s and 150 s on top, at 0.001 $ per second
    assert result.borrowed_usd == pytest.approx((90 + 150) * 0.001)
    # ordered at 10 s, billed from 40 s until 200 s, and the tail of 30 s
    assert result.rented_usd == pytest.approx((200 - 40 + 30) * 0.001)
    assert (result.launches, result.loans, result.failures) == (1, 1, 0)


def test_requests_are_served_first_come_first_served() -> None:
    world = World(params_of())

    world.tick(25)
    world.tick(0)
    world.tick(0)

    assert world.waits == {0: 10.0, 1: 10.0, 2: 5.0}


def test_a_launch_that_fails_costs_nothing_and_goes_away() -> None:
    never = EXACT.model_copy(update={"fail_share": 1.0, "fail_s": 60.0})
    script = Script({0: Orders(rents=2)})

    result = play([0] * 30, script, params_of(boot=never))

    assert (result.launches, result.failures, result.usd) == (2, 2, 0.0)


def test_a_replica_that_is_cancelled_early_is_billed_as_clouds_do() -> None:
    at_once = play([0] * 9, Script({0: Orders(rents=1), 2: Orders(rents=-1)}), params_of())
    soon = play([0] * 9, Script({0: Orders(rents=1), 5: Orders(rents=-1)}), params_of())

    assert at_once.usd == 0.0  # before the cloud had allocated anything
    assert soon.usd == pytest.approx(60 * 0.001)  # 20 s and the tail: the least is 60 s


def test_orders_past_a_limit_are_refused() -> None:
    world = World(params_of(rentable=1))
    world.tick(0)

    with pytest.raises(ValueError, match="5 loans of 4 at 10"):
        world.obey(Orders(loans=5))
    with pytest.raises(ValueError, match="2 rented of 1"):
        world.obey(Orders(rents=2))
    with pytest.raises(ValueError, match="-1 loans"):
        world.obey(Orders(loans=-1))


def test_arrivals_have_the_mean_and_the_scatter_of_the_trace() -> None:
    counts = arrivals(trace_of(*[100.0] * 40, cv=2.0), ServiceSimParams(shape="steps"))

    mean = sum(counts) / len(counts)
    variance = sum((count - mean) ** 2 for count in counts) / len(counts)
    assert len(counts) == 2_400
    assert mean == pytest.approx(1_000, rel=0.01)
    assert variance / mean == pytest.approx(4.0, rel=0.1)


def test_a_few_arrivals_are_drawn_exactly_and_gaps_have_none() -> None:
    gap = RateTrace("t", (RateWindow(0, 600, 0.5), RateWindow(1_200, 600, 0.5)))

    counts = arrivals(gap, ServiceSimParams(shape="steps"))

    assert sum(counts[60:120]) == 0
    assert sum(counts) == pytest.approx(600, rel=0.15)


def test_a_line_joins_the_middles_of_windows() -> None:
    smooth = arrivals(trace_of(1_000.0, 3_000.0), ServiceSimParams(shape="line"))

    assert smooth[59] == pytest.approx(20_000, rel=0.05)
    assert smooth[0] == pytest.approx(10_000, rel=0.05)
    assert smooth[-1] == pytest.approx(30_000, rel=0.05)


SCALERS = ("policy", "hpa", "keda", "hpa+loans")


def scaler_of(name: str, params: ServiceSimParams) -> PolicyScaler | Hpa:
    match name:
        case "policy":
            return PolicyScaler(params, ServiceParams())
        case "keda":
            return Keda(params, HpaTuning(0.7))
        case _:
            return Hpa(params, HpaTuning(0.7, "queue"), name=name, borrows=name == "hpa+loans")


@pytest.mark.parametrize("name", SCALERS)
@settings(max_examples=8, deadline=None)
@given(
    rates=st.lists(st.floats(0, 60), min_size=1, max_size=6),
    home=st.integers(0, 12),
    borrowable=st.integers(0, 8),
    seed=st.integers(0, 3),
)
def test_every_request_was_served_or_waits_and_a_seed_says_everything(
    name: str, rates: list[float], home: int, borrowable: int, seed: int
) -> None:
    params = ServiceSimParams(home=home, borrowable=borrowable, rentable=20, seed=seed)
    counts = arrivals(trace_of(*rates, cv=2.0), params)

    first = play(counts, scaler_of(name, params), params)
    second = play(counts, scaler_of(name, params), params)

    assert first == second
    assert first.arrived == sum(counts)
    assert first.served + first.waiting == pytest.approx(first.arrived)


@pytest.mark.parametrize("name", SCALERS)
def test_another_future_changes_no_earlier_order(name: str) -> None:
    params = ServiceSimParams(home=4, borrowable=6, shape="steps")
    cut = 2 * 36 * 60 // 2  # half of it, in ticks
    hours = [30.0 if 10 <= n < 22 else 8.0 for n in range(36)]
    trace = trace_of(*(hours * 2), cv=2.0)
    other = replace(
        trace,
        windows=tuple(
            replace(w, requests_per_s=50.0 - w.requests_per_s, interarrival_cv=3.0)
            if w.start_s >= cut * 10
            else w
            for w in trace.windows
        ),
    )

    def orders(of: RateTrace) -> list[Orders]:
        found: list[Orders] = []
        counts = arrivals(of, params)
        play(counts, scaler_of(name, params), params, on_orders=lambda _, o: found.append(o))
        return found

    one, two = orders(trace), orders(other)

    assert one[: cut - 1] == two[: cut - 1]
    assert one != two


def test_a_square_wave_of_any_period_bounds_loans_and_launches_per_hour() -> None:
    params = ServiceSimParams(home=4, borrowable=20, replica_rps=1.0)
    policy = ServiceParams()
    for half_ticks in (1, 2, 6, 19, 20, 30, 60, 180):
        counts = [100 if n // half_ticks % 2 else 20 for n in range(6 * 360)]

        result = play(counts, PolicyScaler(params, policy), params)

        swings = 6 * 3_600 / max(20.0 * half_ticks, policy.borrow_hold_s)
        assert result.loans <= (swings + 1) * params.borrowable
        assert result.launches <= (6 * 3_600 / policy.rent_hold_s + 1) * params.borrowable


def test_constant_traffic_ends_all_changes() -> None:
    params = ServiceSimParams(home=4, borrowable=20, replica_rps=1.0)
    late: list[Orders] = []

    def note(seen: Seen, orders: Orders) -> None:
        if seen.now_s > 2.5 * 3_600:
            late.append(orders)

    play([100] * 1_440, PolicyScaler(params, ServiceParams()), params, on_orders=note)

    assert set(late) == {Orders()}


def test_the_bound_is_what_is_left_when_home_works_all_the_time() -> None:
    params = ServiceSimParams(home=1, replica_rps=1.0, wait_slo_s=10.0)

    # 10 served at once, 10 in the next tick, and ten more are due then
    assert fluid_bound_gpu_h([30, 0, 0], params) == pytest.approx(10 / 3_600)
    assert fluid_bound_gpu_h([10] * 50, params) == 0.0


def test_nobody_beats_the_bound_while_all_are_in_time() -> None:
    params = ServiceSimParams(home=10, borrowable=20)
    trace = trace_of(30.0, 60.0, 80.0, 40.0, 60.0)

    view = compare(trace, params, ServiceParams(), with_baselines=False)

    assert view.policy.slo_ratio > 0.999
    assert 0 < view.bound_usd < view.policy.usd


@pytest.mark.slow
def test_a_baseline_is_compared_at_its_cheapest_point_that_keeps_the_goal() -> None:
    params = ServiceSimParams(home=6, borrowable=4)

    view = compare(trace_of(30.0, 20.0, 40.0, 30.0), params, ServiceParams())

    names = {(each.name, each.goal_ratio) for each in view.baselines}
    assert names == {(n, g) for n in ("hpa", "keda", "hpa+loans") for g in (0.99, 0.999)}
    for each in view.baselines:
        if each.outcome is not None:
            assert each.outcome.slo_ratio >= each.goal_ratio
            assert each.policy_usd_ratio == pytest.approx(view.policy.usd / each.outcome.usd)
        else:
            assert each.most_slo_ratio < each.goal_ratio


def test_a_rise_that_comes_every_day_is_rented_for_beforehand() -> None:
    params = ServiceSimParams(home=2, borrowable=0, shape="steps")
    day = [40.0 if 54 <= n < 100 else 8.0 for n in range(144)]  # from nine in the morning on
    counts = arrivals(trace_of(*(day * 3)), params)
    nine = 2 * 8_640 + 54 * 60  # of the third day, in ticks

    def rented_at_nine(policy: ServiceParams) -> int:
        found: list[Seen] = []
        scaler = PolicyScaler(params, policy)
        play(counts[: nine + 1], scaler, params, on_orders=lambda seen, _: found.append(seen))
        return found[nine].on_rent

    knows, knows_not = (
        rented_at_nine(ServiceParams()),
        rented_at_nine(ServiceParams(pattern_days=99)),
    )

    assert (knows_not, knows) == (1, 2)  # a forecast is clipped to 1.5 times the rate
