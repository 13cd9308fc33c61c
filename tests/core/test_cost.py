"""Tests of money: the calendar, the sums, the caps, and the laws they keep."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.cost import (
    Payment,
    Rental,
    cap_breach,
    commitment,
    commitment_of,
    day_start_s,
    instance_usd,
    month_start_s,
    spend_of,
    spent_usd,
)
from hybrid.core.models import (
    Caps,
    Commitment,
    Instance,
    InstanceState,
    LaunchSpec,
    Offer,
    Reason,
)

HOUR_S = 3600.0


def at(text: str) -> float:
    """Return an instant from ISO text, UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def make_offer(*, usd_per_hour: float = 2.0, gpu_count: int = 4) -> Offer:
    return Offer(
        offer_id="local///g4/on_demand",
        provider="local",
        instance_type="g4",
        shape={"GPU": gpu_count},
        gpu_count=gpu_count,
        usd_per_hour=usd_per_hour,
    )


def make_instance(
    *,
    state: InstanceState = InstanceState.RUNNING,
    created_at_s: float,
    ended_at_s: float | None = None,
    usd_per_hour: float = 2.0,
) -> Instance:
    return Instance(
        instance_id="i-1",
        offer=make_offer(usd_per_hour=usd_per_hour),
        spec=LaunchSpec(
            cluster_id="c-1",
            instance_id="i-1",
            epoch=1,
            head_address="127.0.0.1:6379",
            controller_url="http://127.0.0.1:8000",
            labels={},
            expires_at_s=created_at_s + HOUR_S,
            ray_version="2.60.0",
            python_version="3.11.7",
        ),
        token="t-1",
        state=state,
        state_at_s=created_at_s if ended_at_s is None else ended_at_s,
        created_at_s=created_at_s,
        ended_at_s=ended_at_s,
        reason=Reason(code="queue_wait", message="work waits"),
    )


# --- calendar -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "day", "month"),
    [
        pytest.param("2026-11-30T23:59:59", "2026-11-30", "2026-11-01", id="last-second"),
        pytest.param("2026-12-01T00:00:00", "2026-12-01", "2026-12-01", id="first-second"),
        pytest.param("2028-02-29T12:00:00", "2028-02-29", "2028-02-01", id="leap-day"),
        pytest.param("2027-01-01T00:00:00", "2027-01-01", "2027-01-01", id="new-year"),
    ],
)
def test_day_and_month_begin_at_midnight_utc(now: str, day: str, month: str) -> None:
    assert day_start_s(at(now)) == at(day)
    assert month_start_s(at(now)) == at(month)


# --- one instance -------------------------------------------------------------------------


def test_a_live_instance_is_paid_from_its_intent_until_now() -> None:
    instance = make_instance(created_at_s=1000.0, usd_per_hour=2.0)

    assert instance_usd(instance, now_s=1000.0 + HOUR_S / 2) == pytest.approx(1.0)


def test_an_ended_instance_is_paid_until_its_end_and_no_longer() -> None:
    instance = make_instance(
        state=InstanceState.TERMINATED, created_at_s=1000.0, ended_at_s=1000.0 + HOUR_S
    )

    assert instance_usd(instance, now_s=1e9) == pytest.approx(2.0)


def test_a_refused_launch_costs_nothing_and_books_nothing() -> None:
    instance = make_instance(state=InstanceState.FAILED, created_at_s=0.0, ended_at_s=HOUR_S)

    assert instance_usd(instance, now_s=HOUR_S) == 0.0
    assert spend_of(instance) is None


def test_a_clock_set_back_earns_no_money() -> None:
    instance = make_instance(created_at_s=1000.0)

    assert instance_usd(instance, now_s=0.0) == 0.0


def test_a_live_instance_books_nothing_yet() -> None:
    assert spend_of(make_instance(created_at_s=0.0)) is None


def test_spend_names_what_was_rented_and_why() -> None:
    instance = make_instance(
        state=InstanceState.TERMINATED, created_at_s=1000.0, ended_at_s=1000.0 + 2 * HOUR_S
    )

    spend = spend_of(instance)

    assert spend is not None
    assert (spend.instance_id, spend.provider, spend.reason_code) == ("i-1", "local", "queue_wait")
    assert (spend.from_s, spend.to_s, spend.gpu_count) == (1000.0, 1000.0 + 2 * HOUR_S, 4)
    assert spend.usd == pytest.approx(4.0)


def test_spend_of_an_end_before_the_intent_is_zero_and_has_no_negative_time() -> None:
    instance = make_instance(state=InstanceState.TERMINATED, created_at_s=1000.0, ended_at_s=900.0)

    spend = spend_of(instance)

    assert spend is not None
    assert (spend.from_s, spend.to_s, spend.usd) == (1000.0, 1000.0, 0.0)


def test_spend_falls_back_to_the_state_when_the_end_is_unknown() -> None:
    instance = make_instance(state=InstanceState.TERMINATED, created_at_s=0.0)

    spend = spend_of(instance.model_copy(update={"state_at_s": HOUR_S}))

    assert spend is not None
    assert spend.usd == pytest.approx(2.0)


# --- spent so far -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("from_s", "to_s", "expected_usd"),
    [
        pytest.param(-100.0, -50.0, 0.0, id="before"),
        pytest.param(-100.0, 0.0, 0.0, id="ends-at-the-start"),
        pytest.param(-50.0, 50.0, 4.0, id="half"),
        pytest.param(-25.0, 75.0, 6.0, id="three-quarters"),
        pytest.param(0.0, 100.0, 8.0, id="begins-at-the-start"),
        pytest.param(10.0, 10.0, 8.0, id="no-time-at-all"),
    ],
)
def test_spent_counts_the_share_after_the_start(
    from_s: float, to_s: float, expected_usd: float
) -> None:
    spent = spent_usd([Payment(from_s, to_s, 8.0)], since_s=0.0)

    assert spent == pytest.approx(expected_usd)


def test_money_over_midnight_and_month_end_is_split() -> None:
    # 22:00 to 02:00 over the end of November, at $2 an hour.
    instance = make_instance(created_at_s=at("2026-11-30T22:00:00"))
    before_midnight = commitment([instance], [], now_s=at("2026-11-30T23:59:59"), exit_s=0.0)
    ended = instance.model_copy(
        update={"state": InstanceState.TERMINATED, "ended_at_s": at("2026-12-01T02:00:00")}
    )
    spend = spend_of(ended)
    assert spend is not None

    same_day = commitment([ended], [spend], now_s=at("2026-12-01T10:00:00"), exit_s=0.0)
    next_day = commitment([ended], [spend], now_s=at("2026-12-02T00:00:00"), exit_s=0.0)

    assert before_midnight.day_usd == pytest.approx(4.0, abs=0.001)
    assert before_midnight.month_usd == pytest.approx(4.0, abs=0.001)
    assert [same_day.day_usd, same_day.month_usd] == pytest.approx([4.0, 4.0])
    assert [next_day.day_usd, next_day.month_usd] == pytest.approx([0.0, 4.0])


def test_a_running_instance_counts_in_the_new_day_only_since_midnight() -> None:
    instance = make_instance(created_at_s=at("2026-11-30T22:00:00"))

    now = commitment([instance], [], now_s=at("2026-12-01T01:00:00"), exit_s=HOUR_S)

    assert now.day_usd == pytest.approx(2.0)
    assert now.month_usd == pytest.approx(2.0)
    assert now.day_exit_usd == pytest.approx(2.0)


# --- the laws -----------------------------------------------------------------------------

NOW_S = at("2026-11-30T15:00:00")
# A slow, shared machine is no failure.
unhurried = settings(deadline=None)
instants = st.floats(min_value=NOW_S - 40 * 86_400, max_value=NOW_S + 86_400)
prices = st.floats(min_value=0.01, max_value=500.0)
rentals = st.lists(st.builds(Rental, instants, prices, st.integers(0, 16)), max_size=20)


@st.composite
def payment_lists(draw: st.DrawFn) -> list[Payment]:
    spans = draw(st.lists(st.tuples(instants, instants, prices), max_size=20))
    return [Payment(min(a, b), max(a, b), usd) for a, b, usd in spans]


def _commit(live: list[Rental], paid: list[Payment]) -> Commitment:
    return commitment_of(live, paid, now_s=NOW_S, exit_s=1800.0)


@unhurried
@given(rentals, payment_lists())
def test_commitment_is_never_negative_and_a_day_never_passes_its_month(
    live: list[Rental], paid: list[Payment]
) -> None:
    whole = _commit(live, paid)

    assert all(value >= 0 for value in whole.model_dump().values())
    assert whole.day_usd <= whole.month_usd + 1e-6


@unhurried
@given(rentals, payment_lists(), st.randoms(use_true_random=False))
def test_commitment_does_not_depend_on_order(
    live: list[Rental], paid: list[Payment], random: Random
) -> None:
    other_live, other_paid = live[:], paid[:]
    random.shuffle(other_live)
    random.shuffle(other_paid)

    assert _commit(live, paid) == _commit(other_live, other_paid)


@unhurried
@given(rentals, payment_lists(), st.integers(0, 20))
def test_commitment_of_the_whole_is_the_sum_of_its_parts(
    live: list[Rental], paid: list[Payment], cut: int
) -> None:
    whole = _commit(live, paid).model_dump()

    parts = [_commit(live[:cut], paid[:cut]), _commit(live[cut:], paid[cut:])]

    for name, value in whole.items():
        total = math.fsum(part.model_dump()[name] for part in parts)
        assert value == pytest.approx(total, rel=1e-9, abs=1e-9), name


@unhurried
@given(payment_lists(), instants)
def test_money_before_and_after_an_instant_adds_up(paid: list[Payment], cut_s: float) -> None:
    before = [
        Payment(item.from_s, min(item.to_s, cut_s), _share(item, cut_s))
        for item in paid
        if item.from_s < cut_s
    ]

    total = spent_usd(before, since_s=0.0) + spent_usd(paid, since_s=cut_s)

    assert total == pytest.approx(spent_usd(paid, since_s=0.0), rel=1e-9, abs=1e-6)


def _share(item: Payment, cut_s: float) -> float:
    if item.to_s <= cut_s:
        return item.usd
    return item.usd * (cut_s - item.from_s) / (item.to_s - item.from_s)


# --- caps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("caps", "committed", "expected"),
    [
        pytest.param(Caps(), Commitment(node_count=999, day_usd=1e9), None, id="no-caps"),
        pytest.param(Caps(node_count=2), Commitment(node_count=1), None, id="nodes-at"),
        pytest.param(Caps(node_count=2), Commitment(node_count=2), "node_count", id="nodes-over"),
        pytest.param(Caps(node_count=0), Commitment(), "node_count", id="nodes-none"),
        pytest.param(Caps(gpu_count=8), Commitment(gpu_count=4), None, id="gpus-at"),
        pytest.param(Caps(gpu_count=7), Commitment(gpu_count=4), "gpu_count", id="gpus-over"),
        pytest.param(Caps(usd_per_hour=4.0), Commitment(usd_per_hour=2.0), None, id="hour-at"),
        pytest.param(
            Caps(usd_per_hour=3.9), Commitment(usd_per_hour=2.0), "usd_per_hour", id="hour-over"
        ),
        # $2 an hour for half an hour is $1 of exit reserve for the new one.
        pytest.param(
            Caps(usd_per_day=10.0), Commitment(day_usd=8.0, day_exit_usd=1.0), None, id="day-at"
        ),
        pytest.param(
            Caps(usd_per_day=10.0),
            Commitment(day_usd=8.1, day_exit_usd=1.0),
            "usd_per_day",
            id="day-over",
        ),
        pytest.param(
            Caps(usd_per_month=10.0),
            Commitment(month_usd=8.1, day_exit_usd=1.0),
            "usd_per_month",
            id="month-over",
        ),
    ],
)
def test_cap_breach_at_and_over_each_cap(
    caps: Caps, committed: Commitment, expected: str | None
) -> None:
    breach = cap_breach(make_offer(), caps=caps, committed=committed, exit_s=HOUR_S / 2)

    assert (breach.cap if breach else None) == expected


def test_cap_breach_forgives_rounding_only() -> None:
    offer = make_offer(usd_per_hour=0.1)
    two = Commitment(usd_per_hour=0.1 + 0.1)

    assert cap_breach(offer, caps=Caps(usd_per_hour=0.3), committed=two, exit_s=0.0) is None
    assert cap_breach(offer, caps=Caps(usd_per_hour=0.2999), committed=two, exit_s=0.0) is not None


def test_cap_breach_says_cap_limit_used_asked_and_what_to_do() -> None:
    committed = Commitment(day_usd=8.5, day_exit_usd=1.0)

    breach = cap_breach(
        make_offer(), caps=Caps(usd_per_day=10.0), committed=committed, exit_s=HOUR_S / 2
    )

    assert str(breach) == (
        "cap usd_per_day is 10: used 9.5, 1 of it kept to bring live instances home, asked 1; "
        "wait for an instance to end or for the next UTC day, or raise the cap under 'budget' in "
        "the configuration"
    )


def test_cap_breach_of_a_count_does_not_speak_of_days() -> None:
    breach = cap_breach(
        make_offer(), caps=Caps(node_count=1), committed=Commitment(node_count=1), exit_s=0.0
    )

    assert str(breach) == (
        "cap node_count is 1: used 1, asked 1; wait for an instance to end, or raise the cap "
        "under 'budget' in the configuration"
    )
