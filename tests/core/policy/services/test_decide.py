"""One service: when it borrows, rents, gives back, and what it does when it does not know."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.policy.services import (
    Borrow,
    GiveBack,
    Rate,
    Release,
    Rent,
    ServiceMemory,
    ServiceParams,
    ServicePlan,
    Why,
    decide_services,
)
from tests.core.policy.services.make import NOW_S, PATIENT, make_view, rates

PARAMS = ServiceParams()
NO_NOISE = ServiceParams(sigmas=0.0, buffer_share=0.0, spike_share=0.0, alone_spike_share=0.0)


def decide(params: ServiceParams = PARAMS, **changes: Any) -> ServicePlan:
    return decide_services(make_view(**changes), params)


def codes(plan: ServicePlan) -> list[str]:
    return [item.reason.code for item in plan.actions] + [item.code for item in plan.findings]


def test_a_service_with_room_at_home_does_nothing() -> None:
    plan = decide(memory=PATIENT)

    assert plan.actions == ()
    assert plan.findings == ()
    assert plan.rate_rps == 20.0


def test_a_spike_borrows_what_home_lacks() -> None:
    plan = decide(NO_NOISE, rates=rates(60.0))

    [borrow] = plan.actions
    assert isinstance(borrow, Borrow)
    assert borrow.count == 5  # 60 requests/s take 15 replicas of 4, and home has 10
    assert borrow.reason.code == Why.SERVICE_SPIKE
    assert borrow.reason.facts["need_count"] == 15
    assert borrow.reason.facts["rate_rps"] == 60.0


def test_a_backlog_is_served_by_the_time_a_new_loan_serves() -> None:
    # 500 wait; in 40 s + one tick 2,000 come, and 2,500 in 50 s take 12.5 replicas
    plan = decide(NO_NOISE, rates=rates(40.0), backlog=500.0)

    assert plan.need_count == 13
    assert [action.count for action in plan.actions] == [3]


def test_rented_replicas_are_used_before_more_is_borrowed() -> None:
    plan = decide(NO_NOISE, rates=rates(60.0), rented_count=5)

    assert plan.actions == ()


def test_a_jump_is_seen_in_one_window() -> None:
    jump = (Rate(end_at_s=NOW_S, span_s=10.0, rps=80.0), *rates(20.0)[1:])

    plan = decide(NO_NOISE, rates=jump)

    assert plan.rate_rps == 80.0
    assert [action.count for action in plan.actions] == [10]


def test_noise_is_no_jump() -> None:
    noisy = (Rate(end_at_s=NOW_S, span_s=10.0, rps=22.0), *rates(20.0)[1:])

    plan = decide(rates=noisy)

    assert plan.rate_rps == pytest.approx(20.0, abs=0.1)


def test_no_more_is_borrowed_than_may_be_and_the_finding_says_so() -> None:
    plan = decide(NO_NOISE, rates=rates(200.0), memory=ServiceMemory(slow_at_s=NOW_S - 10))

    assert [action.count for action in plan.actions] == [20]
    assert codes(plan) == [Why.SERVICE_SPIKE, Why.LOAN_LIMIT]


def test_room_that_loans_cannot_give_is_rented() -> None:
    plan = decide(NO_NOISE, rates=rates(200.0))

    rent = plan.actions[0]
    assert isinstance(rent, Rent)
    assert rent.count == 20  # 50 replicas, 10 at home and 20 loans
    assert rent.reason.code == Why.SERVICE_ROOM
    assert rent.reason.facts["usd_per_hour"] == 60.0


def test_a_queue_that_no_loan_can_serve_is_rented_for() -> None:
    # 2,400 wait; served within a boot of 600 s they take one replica of 4 requests/s
    plan = decide(NO_NOISE, rates=rates(40.0), backlog=2_400.0, borrowable_count=0)

    assert [(a.kind, a.count) for a in plan.actions] == [("rent", 1)]


def test_where_nothing_can_be_borrowed_rented_replicas_stay_longer_in_place_of_spare_ones() -> None:
    # 4 replicas are rented and none is needed: how long ago was one?
    def left(since_s: float, borrowable_count: int | None) -> list[str]:
        peaks = ((NOW_S - since_s, 4),)
        memory = ServiceMemory(known_since_s=0.0, rent_peaks=peaks, wanted_peaks=peaks)
        plan = decide(
            rates=rates(4.0), rented_count=4, borrowable_count=borrowable_count, memory=memory
        )
        return [action.kind for action in plan.actions]

    assert left(PARAMS.rent_hold_s + 60, 20) == ["release"]
    assert left(PARAMS.rent_hold_s + 60, 0) == []
    assert left(PARAMS.alone_hold_s + 60, 0) == ["release"]
    # Not known is not zero.
    assert left(PARAMS.rent_hold_s + 60, None) == ["release"]

    def rented(share: float) -> int:
        params = ServiceParams(sigmas=0.0, buffer_share=0.0, alone_spike_share=share)
        (rent,) = decide(params, rates=rates(80.0), borrowable_count=0).actions
        return rent.count

    assert (rented(0.0), rented(0.5)) == (10, 20)


def test_what_lasted_is_rented_for_and_then_the_loans_go_back() -> None:
    lows = ((NOW_S - 3_000.0, -5),)
    memory = PATIENT.model_copy(update={"lows": lows})

    plan = decide(NO_NOISE, rates=rates(60.0), borrowed_count=5, memory=memory)
    later = decide(
        NO_NOISE, rates=rates(60.0), borrowed_count=5, rented_count=5, memory=plan.memory
    )

    assert [(a.kind, a.count, a.reason.code) for a in plan.actions] == [
        ("rent", 5, Why.SERVICE_LASTING)
    ]
    assert [(a.kind, a.count, a.reason.code) for a in later.actions] == [
        ("give_back", 5, Why.SERVICE_CALM)
    ]


def test_what_did_not_last_is_not_rented_for() -> None:
    memory = ServiceMemory(known_since_s=NOW_S - PARAMS.lasting_s + 10, lows=((NOW_S - 60, -5),))

    plan = decide(NO_NOISE, rates=rates(60.0), borrowed_count=5, memory=memory)

    assert plan.actions == ()


def test_a_loan_that_was_needed_within_the_hold_stays() -> None:
    hold_s = PARAMS.borrow_hold_s
    recent = PATIENT.model_copy(update={"borrow_peaks": ((NOW_S - hold_s + 1, 15),)})
    past = PATIENT.model_copy(update={"borrow_peaks": ((NOW_S - hold_s, 15),)})

    assert decide(borrowed_count=5, memory=recent).actions == ()
    assert [a.kind for a in decide(borrowed_count=5, memory=past).actions] == ["give_back"]


def test_rented_replicas_that_nobody_needs_are_returned() -> None:
    plan = decide(rented_count=3, booting_count=1, memory=PATIENT)

    [release] = plan.actions
    assert isinstance(release, Release)
    assert (release.count, release.reason.code) == (4, Why.SERVICE_UNUSED)


def test_a_restart_is_patient_with_what_it_finds() -> None:
    plan = decide(rented_count=3, borrowed_count=3, memory=ServiceMemory())

    assert plan.actions == ()


def test_a_lender_gets_back_what_it_asks_for_even_in_a_spike() -> None:
    plan = decide(rates=rates(200.0), borrowed_count=20, borrowable_count=12)

    gives = [action for action in plan.actions if isinstance(action, GiveBack)]
    assert [(a.count, a.reason.code) for a in gives] == [(8, Why.LOAN_RECALLED)]


def test_what_may_be_borrowed_is_unknown_so_nothing_is() -> None:
    plan = decide(rates=rates(60.0), borrowable_count=None, memory=PATIENT)

    assert {action.kind for action in plan.actions} == {"rent"}
    assert Why.LOAN_UNKNOWN in codes(plan)


def test_a_price_limit_is_a_limit() -> None:
    plan = decide(NO_NOISE, rates=rates(200.0), usd_per_hour_limit=30.0)

    assert [a.count for a in plan.actions if a.kind == "rent"] == [10]
    assert Why.RENT_LIMIT in codes(plan)


def test_a_ramp_bounds_what_one_plan_rents() -> None:
    plan = decide(rates=rates(390.0))

    assert [a.count for a in plan.actions if a.kind == "rent"] == [PARAMS.rents_per_plan]
    assert Why.RENT_RAMP in codes(plan)


def test_a_forecast_is_clipped_and_ignores_windows_without_traffic() -> None:
    # nothing came for the first half; a ratio to it once cost ten times the money
    after_zero = (*rates(200.0, count=30), *rates(0.0)[30:])

    plan = decide(rates=after_zero)
    steep = decide(rates=(*rates(200.0, count=30), *rates(1.0)[30:]))

    assert _growth(plan) == 1.0
    assert _growth(steep) == PARAMS.most_growth


def _growth(plan: ServicePlan) -> float:
    [rent] = [action for action in plan.actions if action.kind == "rent"]
    return float(rent.reason.facts["growth_ratio"])


UNKNOWN: dict[str, dict[str, Any]] = {
    "no-rates": {"rates": ()},
    "none": {"rates": rates(None)},
    "nan": {"rates": rates(math.nan)},
    "infinite": {"rates": rates(math.inf)},
    "below-zero": {"rates": rates(-1.0)},
    "stale": {"rates": rates(1.0, now_s=NOW_S - PARAMS.fresh_s - 1)},
    "from-the-future": {"rates": rates(1.0, count=2, now_s=NOW_S + 3_600)},
    "no-backlog": {"backlog": None},
    "nan-backlog": {"backlog": math.nan},
}


@pytest.mark.parametrize("missing", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_known_shrinks_nothing_and_is_said(missing: dict[str, Any]) -> None:
    there: dict[str, Any] = {"borrowed_count": 9, "rented_count": 9, "memory": PATIENT}

    plan = decide(**(there | missing))

    assert plan.actions == ()
    assert plan.findings
    assert plan.memory.known_since_s is None


def test_after_a_gap_the_hold_begins_again() -> None:
    blind = decide(rates=(), borrowed_count=9, memory=PATIENT)

    seen = decide(now_s=NOW_S, borrowed_count=9, memory=blind.memory)

    assert seen.actions == ()
    assert seen.memory.known_since_s == NOW_S


def test_an_unknown_rate_with_a_long_queue_still_grows() -> None:
    plan = decide(rates=(), backlog=4_000.0)

    assert [action.kind for action in plan.actions] == ["borrow"]


def test_a_stale_window_between_fresh_ones_is_left_out() -> None:
    holes = tuple(
        rate.model_copy(update={"rps": None}) if n % 2 else rate
        for n, rate in enumerate(rates(60.0))
    )

    assert decide(rates=holes).rate_rps == 60.0


COUNTS = st.integers(0, 60)
NUMBERS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))
VIEWS = st.builds(
    make_view,
    rates=st.lists(
        st.builds(
            Rate,
            end_at_s=st.floats(NOW_S - 700, NOW_S + 20),
            span_s=st.floats(1, 60),
            rps=st.one_of(NUMBERS, st.floats(0, 500)),
        ),
        max_size=12,
    ).map(tuple),
    backlog=st.one_of(NUMBERS, st.floats(0, 10_000)),
    dispersion=NUMBERS,
    home_count=COUNTS,
    borrowed_count=COUNTS,
    borrowing_count=COUNTS,
    rented_count=COUNTS,
    booting_count=COUNTS,
    borrowable_count=st.one_of(st.none(), COUNTS),
    rentable_count=COUNTS,
    usd_per_hour_limit=st.one_of(st.none(), st.floats(0, 500)),
    usual_growth=NUMBERS,
    memory=st.sampled_from([ServiceMemory(), PATIENT]),
)


@given(view=VIEWS)
def test_no_cap_is_ever_passed_and_no_more_goes_than_is_there(view: Any) -> None:
    plan = decide_services(view, PARAMS)

    change = {action.kind: action.count for action in plan.actions}
    assert len(change) == len(plan.actions)
    on_loan = view.on_loan_count + change.get("borrow", 0) - change.get("give_back", 0)
    on_rent = view.on_rent_count + change.get("rent", 0) - change.get("release", 0)
    assert on_loan >= 0
    assert on_rent >= 0
    if "borrow" in change:
        assert view.borrowable_count is not None
        assert on_loan <= view.borrowable_count
    if "rent" in change:
        assert on_rent <= view.rent_limit_count
    if view.borrowable_count is not None:
        assert on_loan <= view.borrowable_count
    assert on_rent <= view.rent_limit_count or "release" not in change


@given(view=VIEWS)
def test_what_is_not_known_never_shrinks_below_the_caps(view: Any) -> None:
    blind = view.model_copy(update={"rates": ()})

    plan = decide_services(blind, PARAMS)

    for action in plan.actions:
        if action.kind == "give_back":
            assert action.reason.code == Why.LOAN_RECALLED
        if action.kind == "release":
            assert action.reason.code == Why.RENT_LIMIT


@given(view=VIEWS, seed=st.randoms())
def test_equal_views_give_equal_plans_in_any_order_of_windows(view: Any, seed: Any) -> None:
    shuffled = list(view.rates)
    seed.shuffle(shuffled)
    again = view.model_copy(update={"rates": tuple(shuffled)})

    assert decide_services(view, PARAMS) == decide_services(again, PARAMS)


@given(low=st.floats(0, 300), more=st.floats(0, 300), backlog=st.floats(0, 5_000))
def test_a_higher_rate_never_needs_fewer_replicas(low: float, more: float, backlog: float) -> None:
    few = decide(rates=rates(low), backlog=backlog).need_count
    many = decide(rates=rates(low + more), backlog=backlog).need_count

    assert few is not None
    assert many is not None
    assert many >= few


@given(view=VIEWS)
def test_each_action_has_a_code_a_sentence_and_numbers_with_units(view: Any) -> None:
    plan = decide_services(view, PARAMS)

    for reason in (*(action.reason for action in plan.actions), *plan.findings):
        assert reason.code in set(Why)
        assert reason.message
        assert "nan" not in reason.message
        for name in reason.facts:
            assert name.endswith(("_count", "_ratio", "_rps", "_usd_per_hour")) or name == (
                "usd_per_hour"
            )
