"""Tests of what may be rented: stock, limits, failures, blindness, and every cap."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.cost import cap_breach
from hybrid.core.models import Caps, Commitment, InstanceState, Market, Offer
from hybrid.core.policy.market import Market as Shop
from hybrid.core.policy.market import is_coming, rented_labels
from hybrid.core.policy.room import Axis
from tests.core.make import (
    CLOUD,
    NOT_CLOUD,
    NOW_S,
    ONPREM,
    blind,
    laws,
    make_demand,
    make_failure,
    make_instance,
    make_offer,
    make_params,
    make_snapshot,
    rule,
)

S = InstanceState
PARAMS = make_params(min_life_s=900.0, drain_s=1_800.0, exit_margin_s=900.0)  # $1/h = $1 a launch
DEMANDS = (make_demand(1, 1, CLOUD, CPU=1), make_demand(1, 1, (rule("zone", "z"),)))


def make_shop(offer: Offer | None = None, *, axis: Axis | None = None, **more: Any) -> Shop:
    snapshot = make_snapshot(**{"offers": (offer or make_offer(),), **more})
    return Shop.of(snapshot, PARAMS, axis or Axis.of(DEMANDS))


def instances(*states: InstanceState, **changes: Any) -> tuple[Any, ...]:
    return tuple(make_instance(f"i-{n}", s, **changes) for n, s in enumerate(states))


# --- offers ---------------------------------------------------------------------------------


def test_offers_are_sorted_by_rank_then_price_then_name() -> None:
    offers = (
        make_offer("d", usd=1, rank=1),
        make_offer("c", usd=9),
        make_offer("b", usd=2),
        make_offer("a", usd=2),
    )

    assert [o.offer_id for o in make_shop(offers=offers).offers] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("demand", "is_held"),
    [
        pytest.param(make_demand(4), True, id="exactly"),
        pytest.param(make_demand(4.0001), False, id="one-unit-too-large"),
        pytest.param(make_demand(1, 1, CPU=1), False, id="a-resource-it-lacks"),
        pytest.param(make_demand(1, 1, CLOUD), True, id="cloud"),
        pytest.param(make_demand(1, 1, ONPREM), False, id="onprem-only"),
        pytest.param(make_demand(1, 1, NOT_CLOUD), False, id="not-cloud"),
        pytest.param(make_demand(1, 1, ONPREM, CLOUD), True, id="cloud-as-a-second-choice"),
        pytest.param(make_demand(1, 1, (rule("zone", "z"),)), True, id="its-zone"),
        pytest.param(make_demand(1, 1, (rule("team", "x"),)), True, id="the-users-own-label"),
    ],
)
def test_an_offer_holds_what_its_empty_node_could_take(demand: Any, is_held: bool) -> None:
    offer = make_offer(labels={"zone": "z", "team": "x"}, stock=0)
    shop = make_shop(offer, axis=Axis.of((demand,)))

    assert list(shop.holding(demand)) == ([offer] if is_held else [])


def test_several_requests_are_held_when_each_alone_is() -> None:
    one, other, third = make_demand(4, 1, CPU=1), make_demand(1, 1, CPU=8), make_demand(8)
    offer = make_offer(CPU=8)
    shop = make_shop(offer, axis=Axis.of((one, other, third)))

    assert list(shop.holding(one, other)) == [offer]
    assert list(shop.holding(one, other, third)) == []


def test_the_labels_of_a_rented_node_say_where_and_what_it_is() -> None:
    plain = make_offer()
    full = plain.model_copy(
        update={
            "region": "eu",
            "zone": "eu-1",
            "accelerator": "A100",
            "market": Market.SPOT,
            "labels": {"team": "x", "market": "mine"},
        }
    )

    assert rented_labels(plain) == {
        "site": "cloud",
        "provider": "sim",
        "market": "on_demand",
        "instance-type": "a",
    }
    assert rented_labels(full) == {
        "site": "cloud",
        "provider": "sim",
        "market": "mine",
        "instance-type": "a",
        "region": "eu",
        "zone": "eu-1",
        "accelerator": "A100",
        "team": "x",
    }


# --- stock, own limits, blindness, failures -------------------------------------------------

LOST_ONE = instances(S.LOST)
CASES = {
    "no-limit-known": (make_offer(), {}, 9, None),
    "stock": (make_offer(stock=3), {}, 3, "sold_out"),
    "sold-out": (make_offer(stock=0), {}, 0, "sold_out"),
    "max-nodes": (make_offer(max_count=2), {}, 2, "max_nodes"),
    "max-nodes-counts-what-lives": (
        make_offer(max_count=3),
        {"instances": instances(S.RUNNING, S.TERMINATING)},
        1,
        "max_nodes",
    ),
    "max-nodes-counts-what-is-lost": (
        make_offer(max_count=1),
        {"instances": LOST_ONE},
        0,
        "max_nodes",
    ),
    "max-nodes-counts-only-its-own": (
        make_offer(max_count=1),
        {"instances": instances(S.RUNNING, offer=make_offer("b"))},
        1,
        "max_nodes",
    ),
    "max-nodes-was-lowered": (
        make_offer(max_count=1),
        {"instances": instances(S.RUNNING, S.RUNNING, S.RUNNING)},
        0,
        "max_nodes",
    ),
    "the-smaller-limit-binds": (make_offer(stock=5, max_count=2), {}, 2, "max_nodes"),
    "the-smaller-limit-binds-2": (make_offer(stock=1, max_count=2), {}, 1, "sold_out"),
    "blind": (make_offer(), {"blind": (blind(),)}, 0, "provider_blind"),
    "another-provider-is-blind": (make_offer(), {"blind": (blind("provider:b"),)}, 9, None),
    "resting": (make_offer(), {"failures": (make_failure(),)}, 0, "backed_off"),
    "another-offer-rests": (make_offer(), {"failures": (make_failure("b"),)}, 9, None),
    "rested-exactly-long-enough": (
        make_offer(),
        {"failures": (make_failure(until_s=NOW_S),)},
        1,
        "probing",
    ),
    "rested-but-a-probe-is-under-way": (
        make_offer(stock=5),
        {
            "failures": (make_failure(until_s=NOW_S - 1),),
            "instances": instances(S.BOOTING),
        },
        0,
        "probing",
    ),
}


@pytest.mark.parametrize(("offer", "more", "room", "code"), CASES.values(), ids=CASES)
def test_what_an_offer_may_give_and_what_forbids_the_rest(
    offer: Offer, more: dict[str, Any], room: int, code: str | None
) -> None:
    shop = make_shop(offer, **more)

    assert shop.room_for(offer, 9) == room
    if code is not None:
        for _ in range(room):
            assert shop.room_for(offer, 1) == 1
            shop.take(offer, 1)
        assert shop.room_for(offer, 1) == 0
        assert shop.refusal(offer).code == code


@pytest.mark.parametrize(
    ("offer", "taken", "count", "expected"),
    [
        pytest.param(make_offer(stock=0), 0, 1, "a is sold out", id="none"),
        pytest.param(make_offer(stock=2), 2, 1, "a has 2 in stock; this plan takes 2", id="taken"),
        pytest.param(
            make_offer(stock=2), 0, 3, "a has 2 in stock; 3 are needed at once", id="too-few"
        ),
        pytest.param(
            make_offer(max_count=2),
            1,
            2,
            "max_nodes of a is 2, with 0 rented; this plan takes 1; 2 are needed at once",
            id="all-of-it",
        ),
    ],
)
def test_a_refusal_says_what_this_plan_takes_and_what_is_needed(
    offer: Offer, taken: int, count: int, expected: str
) -> None:
    shop = make_shop(offer)
    if taken:
        shop.take(offer, taken)

    assert shop.refusal(offer, count).message == expected


def test_the_words_of_a_rest_say_why_and_how_long() -> None:
    shop = make_shop(failures=(make_failure(until_s=NOW_S + 90),))

    message = shop.refusal(make_offer()).message

    assert message == "a failed (full); tried again in 90 s"


# --- the half-open probe (reliability 16) ---------------------------------------------------

RESTED: dict[str, Any] = {"failures": (make_failure(until_s=NOW_S - 1),)}


WAVE = make_params(first_wave_count=3)


@pytest.mark.parametrize(
    ("more", "room"),
    [
        pytest.param({}, 3, id="none"),
        pytest.param({"instances": instances(S.REQUESTED, S.BOOTING)}, 1, id="on-their-way"),
        pytest.param({"instances": instances(S.BOOTING, deadline_at_s=1.0)}, 2, id="late-ones"),
        pytest.param({"instances": instances(S.TERMINATING, S.LOST)}, 3, id="given-up"),
        pytest.param({"instances": instances(*[S.BOOTING] * 4)}, 0, id="more-than-allowed-now"),
        pytest.param(
            {"instances": instances(S.BOOTING, offer=make_offer("b"))}, 3, id="of-another-offer"
        ),
        pytest.param(
            {"instances": instances(S.DRAINING, joined_at_s=1.0)}, 9, id="one-that-joined"
        ),
        pytest.param({"boot_s_by_offer": {"a": 60.0}}, 9, id="one-that-joined-long-ago"),
        pytest.param({"boot_s_by_offer": {"b": 60.0}}, 3, id="another-that-joined-long-ago"),
    ],
)
def test_until_a_node_of_an_offer_has_joined_only_a_few_come_at_once(
    more: dict[str, Any], room: int
) -> None:
    snapshot = make_snapshot(offers=(make_offer(),), **more)
    shop = Shop.of(snapshot, WAVE, Axis.of(DEMANDS))

    assert shop.room_for(make_offer(), 9) == room
    if room < 9:
        for _ in range(room):
            shop.take(make_offer(), 1)
        assert shop.room_for(make_offer(), 1) == 0
        assert shop.refusal(make_offer()).code == "first_wave"


def test_a_gang_comes_whole_when_nothing_of_its_offer_is_on_its_way() -> None:
    offer = make_offer()
    alone = Shop.of(make_snapshot(offers=(offer,)), WAVE, Axis.of(DEMANDS))
    coming = make_snapshot(offers=(offer,), instances=instances(S.BOOTING))
    behind = Shop.of(coming, WAVE, Axis.of(DEMANDS))

    assert alone.room_for(offer, 5, is_gang=True) == 5
    alone.take(offer, 5)
    assert alone.room_for(offer, 5, is_gang=True) == 0
    assert behind.room_for(offer, 5, is_gang=True) == 2
    assert behind.refusal(offer, 5).code == "first_wave"
    assert behind.could_ever(offer, 5)


def test_after_a_failure_one_launch_tries_the_offer() -> None:
    shop, offer = make_shop(**RESTED), make_offer()

    assert shop.room_for(offer, 5) == 1
    shop.take(offer, 1)

    assert shop.room_for(offer, 1) == 0


def test_a_gang_may_be_the_probe_however_many_instances_it_takes() -> None:
    """Otherwise work in gangs alone could never try the offer again."""
    shop, offer = make_shop(**RESTED), make_offer()

    assert shop.room_for(offer, 5, is_gang=True) == 5
    shop.take(offer, 5)

    assert shop.room_for(offer, 1, is_gang=True) == 0


def test_a_gang_as_the_probe_needs_stock_all_the_same() -> None:
    offer = make_offer(stock=2)

    assert make_shop(offer, **RESTED).room_for(offer, 5, is_gang=True) == 2


@pytest.mark.parametrize(
    ("instance", "room"),
    [
        pytest.param(make_instance(state=S.REQUESTED), 0, id="requested"),
        pytest.param(make_instance(state=S.BOOTING, deadline_at_s=NOW_S + 1), 0, id="booting"),
        pytest.param(make_instance(state=S.RUNNING), 1, id="it-ran-before-the-failure"),
        pytest.param(make_instance(state=S.TERMINATING), 1, id="it-is-leaving"),
        pytest.param(make_instance(state=S.LOST), 1, id="it-is-lost"),
        pytest.param(make_instance(state=S.BOOTING, deadline_at_s=NOW_S), 1, id="it-is-late"),
        pytest.param(make_instance(state=S.BOOTING, quarantine="bug"), 1, id="quarantined"),
    ],
)
def test_only_a_launch_under_way_is_a_probe_under_way(instance: Any, room: int) -> None:
    shop = make_shop(instances=(instance,), **RESTED)

    assert shop.room_for(make_offer(), 5) == room
    assert is_coming(instance, now_s=NOW_S) == (room == 0)


# --- caps (reliability 10) ------------------------------------------------------------------

CAP_CASES = {
    "no-cap": (Caps(), Commitment(), 9, None),
    "nodes": (Caps(node_count=3), Commitment(node_count=1), 2, "cap_nodes"),
    "nodes-none": (Caps(node_count=0), Commitment(), 0, "cap_nodes"),
    "nodes-lowered": (Caps(node_count=1), Commitment(node_count=5), 0, "cap_nodes"),
    "gpus": (Caps(gpu_count=13), Commitment(gpu_count=4), 2, "cap_gpus"),
    "usd-per-hour": (Caps(usd_per_hour=12), Commitment(usd_per_hour=4), 2, "cap_usd_per_hour"),
    "usd-per-hour-exactly": (Caps(usd_per_hour=0.3), Commitment(), 3, "cap_usd_per_hour"),
    "day": (Caps(usd_per_day=12), Commitment(day_usd=4), 2, "cap_usd_per_day"),
    "day-keeps-the-way-out-of-what-lives": (
        Caps(usd_per_day=12),
        Commitment(day_usd=2, day_exit_usd=5),
        1,
        "cap_usd_per_day",
    ),
    "day-spent": (Caps(usd_per_day=12), Commitment(day_usd=12), 0, "cap_usd_per_day"),
    "day-overspent": (Caps(usd_per_day=12), Commitment(day_usd=50), 0, "cap_usd_per_day"),
    "month": (
        Caps(usd_per_month=100),
        Commitment(day_usd=1, month_usd=90, day_exit_usd=1),
        2,
        "cap_usd_per_month",
    ),
    "the-tightest-binds": (
        Caps(node_count=9, gpu_count=100, usd_per_hour=8, usd_per_day=100),
        Commitment(),
        2,
        "cap_usd_per_hour",
    ),
}


@pytest.mark.parametrize(("caps", "used", "room", "code"), CAP_CASES.values(), ids=CAP_CASES)
def test_each_cap_holds_with_what_is_used(
    caps: Caps, used: Commitment, room: int, code: str | None
) -> None:
    usd = 0.1 if caps.usd_per_hour == 0.3 else 4.0
    offer = make_offer(usd=usd)
    shop = make_shop(offer, caps=caps, commitment=used)

    assert shop.room_for(offer, 9) == room
    if code is not None:
        shop.take(offer, room)
        assert shop.room_for(offer, 1) == 0
        assert shop.refusal(offer).code == code


def test_launches_of_one_plan_count_against_the_caps_of_every_offer() -> None:
    big, small = make_offer("big", 8, usd=8), make_offer("small", 1, usd=1)
    shop = make_shop(offers=(big, small), caps=Caps(gpu_count=10, usd_per_day=11))

    shop.take(big, 1)

    assert shop.room_for(small, 9) == 2
    assert shop.room_for(big, 9) == 0


def test_an_offer_without_gpus_is_not_held_by_a_cap_on_gpus() -> None:
    offer = make_offer(gpus=0, CPU=8)
    shop = make_shop(offer, caps=Caps(gpu_count=0))

    assert shop.room_for(offer, 9) == 9


def test_a_cap_that_is_passed_already_lets_nothing_through() -> None:
    """As in the ledger: it was lowered, so something must leave first."""
    offer = make_offer(gpus=0, CPU=8)
    shop = make_shop(offer, caps=Caps(gpu_count=4), commitment=Commitment(gpu_count=5))

    assert shop.room_for(offer, 9) == 0
    assert shop.refusal(offer).code == "cap_gpus"


def test_the_words_of_a_cap_name_it_as_the_file_does_with_all_numbers() -> None:
    offer = make_offer(usd=2.5)
    shop = make_shop(offer, caps=Caps(usd_per_hour=8), commitment=Commitment(usd_per_hour=7.25))

    assert shop.refusal(offer).message == (
        "budget.usd_per_hour is 8, 7.25 of it is taken or promised, and one more a needs 2.5"
    )
    assert "and 3 more a needs 7.5" in shop.refusal(offer, 3).message


def test_asking_for_a_refusal_where_there_is_none_is_a_bug() -> None:
    with pytest.raises(ValueError, match="no cap forbids one more a"):
        make_shop().refusal(make_offer())


@pytest.mark.parametrize(
    ("offer", "caps", "count", "expected"),
    [
        pytest.param(make_offer(stock=0), Caps(), 1, True, id="stock-comes-back"),
        pytest.param(make_offer(max_count=2), Caps(), 2, True, id="within-max-nodes"),
        pytest.param(make_offer(max_count=2), Caps(), 3, False, id="beyond-max-nodes"),
        pytest.param(make_offer(), Caps(node_count=2), 3, False, id="beyond-the-nodes"),
        pytest.param(make_offer(), Caps(gpu_count=3), 1, False, id="one-is-too-large"),
        pytest.param(make_offer(), Caps(usd_per_hour=4), 1, True, id="one-is-just-right"),
        pytest.param(make_offer(), Caps(usd_per_day=3.9), 1, False, id="no-day-is-long-enough"),
        pytest.param(make_offer(), Caps(usd_per_month=3.9), 1, False, id="nor-any-month"),
    ],
)
def test_what_could_be_had_if_nothing_were_rented(
    offer: Offer, caps: Caps, count: int, expected: bool
) -> None:
    used = Commitment(node_count=9, gpu_count=99, usd_per_hour=99, day_usd=99, month_usd=99)
    shop = make_shop(offer, caps=caps, commitment=used)

    assert shop.could_ever(offer, count) is expected


maybe = st.one_of(st.none(), st.integers(0, 40).map(float))
counts = st.one_of(st.none(), st.integers(0, 40))


@given(
    st.builds(
        Caps,
        node_count=counts,
        gpu_count=counts,
        usd_per_hour=maybe,
        usd_per_day=maybe,
        usd_per_month=maybe,
    ),
    st.builds(
        Commitment,
        node_count=st.integers(0, 5),
        gpu_count=st.integers(0, 20),
        usd_per_hour=st.floats(0, 20),
        day_usd=st.floats(0, 20),
        month_usd=st.floats(20, 40),
        day_exit_usd=st.floats(0, 10),
    ),
    st.lists(st.tuples(st.integers(0, 8), st.floats(0.01, 9)), min_size=1, max_size=4),
)
@laws
def test_what_the_policy_takes_the_ledger_never_refuses(
    caps: Caps, used: Commitment, kinds: list[tuple[int, float]]
) -> None:
    """The ledger is the hard cap; a policy that asks beyond it would ask again each tick."""
    offers = tuple(make_offer(f"o-{n}", gpus, usd) for n, (gpus, usd) in enumerate(kinds))
    shop = make_shop(offers=offers, caps=caps, commitment=used)
    now = used
    for offer in offers:
        count = shop.room_for(offer, 3)
        shop.take(offer, count)
        for _ in range(count):
            assert not cap_breach(offer, caps=caps, committed=now, exit_s=PARAMS.exit_s)
            now = now.model_copy(
                update={
                    "node_count": now.node_count + 1,
                    "gpu_count": now.gpu_count + offer.gpu_count,
                    "usd_per_hour": now.usd_per_hour + offer.usd_per_hour,
                    "day_exit_usd": now.day_exit_usd + offer.usd_per_hour * PARAMS.exit_s / 3600,
                }
            )
