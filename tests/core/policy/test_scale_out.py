"""Tests of what is launched: which offer, how many, for whom, when, and with what reason."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.core.models import Caps, Commitment, InstanceState, Spread
from hybrid.core.policy.decide import decide
from hybrid.core.policy.plan import Launch, Plan
from hybrid.core.ports import Mode
from tests.core.make import (
    CLOUD,
    NOW_S,
    ONPREM,
    blind,
    make_demand,
    make_failure,
    make_gang,
    make_instance,
    make_node,
    make_offer,
    make_params,
    make_snapshot,
    rule,
)

S = InstanceState
PARAMS = make_params(max_wait_s=300.0, stabilisation_s=30.0)
LATE_S = 301.0


def plan(*, params: Any = PARAMS, **snapshot: Any) -> Plan:
    return decide(make_snapshot(**{"offers": (make_offer(),), **snapshot}), params)


def launched(made: Plan) -> list[str]:
    """Return the offers launched, one entry each, sorted."""
    return sorted(a.offer.offer_id for a in made.actions if isinstance(a, Launch))


def late(gpus: float = 1, count: int = 1, *selectors: Any, **more: Any) -> Any:
    return make_demand(gpus, count, *selectors, waiting_s=LATE_S, **more)


def late_gang(*bundles: Any, **more: Any) -> Any:
    return make_gang(*bundles, waiting_s=LATE_S, **more)


# --- which offer ----------------------------------------------------------------------------

ONE, FOUR, EIGHT = make_offer("1", 1, 1.2), make_offer("4", 4, 4.4), make_offer("8", 8, 8.0)
CHOICES = {
    "one-request-takes-the-smallest": ((late(1),), ["1"]),
    "eight-requests-take-the-best-price": ((late(1, 8),), ["8"]),
    "the-rest-takes-what-fits": ((late(1, 9),), ["1", "8"]),
    "four-take-a-node-of-four": ((late(1, 4),), ["4"]),
    "a-large-request-takes-a-large-node": ((late(8),), ["8"]),
    "small-ones-fill-up-a-large-node": ((late(6), late(1, 2)), ["8"]),
    "two-kinds-on-one-node": ((late(4), late(2, 2)), ["8"]),
    "halves": ((late(0.5, 2),), ["1"]),
    "many": ((late(1, 80),), ["8"] * 10),
    "nothing-for-work-that-is-not-late": ((make_demand(1, 80, waiting_s=300.0),), []),
    "nothing-for-onprem-only": ((late(1, 80, ONPREM),), []),
    "something-for-onprem-preferred": ((late(1, 1, ONPREM, CLOUD),), ["1"]),
    "nothing-for-what-no-offer-holds": ((late(9),), []),
}


@pytest.mark.parametrize(("demands", "expected"), CHOICES.values(), ids=CHOICES)
def test_the_cheapest_way_to_serve_is_launched(demands: Any, expected: list[str]) -> None:
    assert launched(plan(demands=demands, offers=(EIGHT, ONE, FOUR))) == expected


def test_ordered_offers_are_taken_in_order_whatever_they_cost() -> None:
    first = make_offer("dear", 1, 9.0, rank=0, stock=2)
    second = make_offer("cheap", 8, 1.0, rank=1)

    made = plan(demands=(late(1, 4),), offers=(second, first))

    assert launched(made) == ["cheap", "dear", "dear"]


def test_an_offer_of_a_higher_rank_is_taken_when_the_first_cannot_hold_the_work() -> None:
    first, second = make_offer("small", 1, rank=0), make_offer("big", 8, 99.0, rank=1)

    assert launched(plan(demands=(late(8),), offers=(first, second))) == ["big"]


def test_work_without_gpus_rents_by_price_too() -> None:
    cpu, gpu = make_offer("cpu", 0, 0.5, CPU=16), make_offer("gpu", 8, 8.0, CPU=64)

    assert launched(plan(demands=(late(0, 20, CPU=1),), offers=(gpu, cpu))) == ["cpu", "cpu"]


def test_work_without_gpus_rides_along_on_a_gpu_node() -> None:
    cpu, gpu = make_offer("cpu", 0, 0.5, CPU=16), make_offer("gpu", 8, 8.0, CPU=64)

    made = plan(demands=(late(8, 1, CPU=8), late(0, 20, CPU=1)), offers=(gpu, cpu))

    assert launched(made) == ["gpu"]


def test_labels_decide_which_offer_may_serve() -> None:
    a100 = make_offer("a100", 8, 30.0, accelerator="A100")
    demand = late(1, 1, (rule("accelerator", "A100"),))

    assert launched(plan(demands=(demand,), offers=(EIGHT, a100))) == ["a100"]


def test_equal_offers_are_told_apart_by_name() -> None:
    twins = (make_offer("b"), make_offer("a"))

    assert launched(plan(demands=(late(1),), offers=twins)) == ["a"]


# --- how many -------------------------------------------------------------------------------


def test_the_rest_goes_to_the_next_offer_when_stock_ends() -> None:
    offers = (make_offer("8", 8, 8.0, stock=1), make_offer("4", 4, 4.4, max_count=1), ONE)

    assert launched(plan(demands=(late(1, 16),), offers=offers)) == ["1"] * 4 + ["4", "8"]


def test_an_offer_that_rests_is_passed_over_in_the_same_plan() -> None:
    made = plan(demands=(late(1, 8),), offers=(EIGHT, ONE), failures=(make_failure("8"),))

    assert launched(made) == ["1"] * 8


def test_a_blind_provider_gets_no_launch_and_others_do() -> None:
    other = make_offer("b", 8, 99.0, provider="other")
    demands = (late(1, 8),)

    assert launched(plan(demands=demands, offers=(EIGHT, other), blind=(blind(),))) == ["b"]
    assert launched(plan(demands=demands, offers=(EIGHT,), blind=(blind(),))) == []


@pytest.mark.parametrize(
    ("caps", "used", "expected"),
    [
        pytest.param(Caps(node_count=3), Commitment(node_count=1), 2, id="nodes"),
        pytest.param(Caps(gpu_count=12), Commitment(gpu_count=4), 2, id="gpus"),
        pytest.param(Caps(usd_per_hour=9), Commitment(usd_per_hour=1), 2, id="usd-per-hour"),
        pytest.param(Caps(node_count=0), Commitment(), 0, id="nothing-allowed"),
    ],
)
def test_launches_stop_at_each_cap(caps: Caps, used: Commitment, expected: int) -> None:
    made = plan(demands=(late(1, 40),), caps=caps, commitment=used)

    assert launched(made) == ["a"] * expected


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_one_plan_launches_no_more_than_it_may(limit: int) -> None:
    params = PARAMS.model_copy(update={"launches_per_tick": limit})
    gangs = (late_gang(late(4), late(4)),)

    assert len(launched(plan(demands=(late(1, 400),), params=params))) == limit
    assert len(launched(plan(demands=(late(1, 400),), gangs=gangs, params=params))) == limit


def test_booting_instances_are_not_launched_twice() -> None:
    booting = make_instance(state=S.BOOTING, deadline_at_s=NOW_S + 1)

    assert launched(plan(demands=(late(1, 4),), instances=(booting,))) == []
    assert launched(plan(demands=(late(1, 5),), instances=(booting,))) == ["a"]


def test_a_late_or_quarantined_instance_is_replaced() -> None:
    overdue = make_instance(state=S.BOOTING, deadline_at_s=NOW_S)
    broken = make_instance("i-2", S.BOOTING, quarantine="a bug")

    assert launched(plan(demands=(late(1, 4),), instances=(overdue, broken))) == ["a"]


# --- when -----------------------------------------------------------------------------------

TIMES = {
    "both-reached": (301.0, NOW_S - 30.0, True),
    "wait-not-reached": (300.0, NOW_S - 30.0, False),
    "stabilisation-not-reached": (301.0, NOW_S - 29.9, False),
    "first-seen-now": (301.0, None, False),
    "age-not-known": (None, NOW_S - 30.0, False),
}


@pytest.mark.parametrize(("waiting_s", "since_s", "is_launched"), TIMES.values(), ids=TIMES)
def test_money_is_spent_after_the_wait_and_the_stabilisation(
    waiting_s: float | None, since_s: float | None, is_launched: bool
) -> None:
    made = plan(demands=(make_demand(1, 1, waiting_s=waiting_s),), breach_since_s=since_s)

    assert bool(launched(made)) == is_launched


def test_by_wait_only_late_work_is_rented_for() -> None:
    made = plan(demands=(late(1, 4), make_demand(2, 50, waiting_s=10)))

    assert launched(made) == ["a"]


def test_by_size_the_whole_queue_is_rented_for() -> None:
    params = PARAMS.model_copy(update={"pending_gpus": 8.0})

    assert launched(plan(demands=(make_demand(1, 8),), params=params)) == []
    assert launched(plan(demands=(make_demand(1, 9),), params=params)) == ["a"] * 3


def test_late_work_that_cannot_be_had_does_not_hold_up_a_queue_that_is_too_long() -> None:
    params = PARAMS.model_copy(update={"pending_gpus": 8.0})
    rare = late(1, 1, (rule("accelerator", "H100"),))
    offers = (make_offer(), make_offer("h100", stock=0, accelerator="H100"))

    made = plan(demands=(rare, make_demand(1, 9)), offers=offers, params=params)

    assert launched(made) == ["a"] * 3
    assert {a.reason.code for a in made.actions} == {"queue_gpus"}


@pytest.mark.parametrize(
    "mode", [Mode(is_out_paused=True), Mode(is_closing=True)], ids=["paused", "closing"]
)
def test_nothing_is_launched_while_launches_are_off(mode: Mode) -> None:
    made = plan(demands=(late(1, 4),), gangs=(late_gang(late(4)),), mode=mode)

    assert made.actions == ()
    assert made.breach_since_s == 0.0, "the breach goes on, so launches start at once afterwards"


def test_a_pause_of_scale_in_does_not_stop_launches() -> None:
    assert launched(plan(demands=(late(1, 4),), mode=Mode(is_in_paused=True))) == ["a"]


# --- gangs ----------------------------------------------------------------------------------

GANGS = {
    "pack": (late_gang(*[late(2)] * 4), ["8"]),
    "spread": (late_gang(*[late(2)] * 4, spread=Spread.SPREAD), ["8"]),
    "strict-pack": (late_gang(*[late(2)] * 4, spread=Spread.STRICT_PACK), ["8"]),
    "strict-spread": (late_gang(*[late(2)] * 4, spread=Spread.STRICT_SPREAD), ["4"] * 4),
    "wider-than-one-node": (late_gang(*[late(4)] * 4), ["8", "8"]),
    "a-node-each-when-that-is-cheaper": (late_gang(*[late(3)] * 3), ["4"] * 3),
    "bundles-of-two-sizes-on-one-node": (late_gang(late(5), late(3)), ["8"]),
    "bundles-of-two-sizes-on-two-nodes": (late_gang(late(5), late(5), late(3)), ["8", "8"]),
    "not-late": (make_gang(*[late(2)] * 4, waiting_s=300.0), []),
    "too-large-for-any": (late_gang(late(9)), []),
    "onprem-only": (late_gang(late(1, 1, ONPREM)), []),
    "one-bundle-onprem-only": (late_gang(late(1), late(1, 1, ONPREM)), []),
}


@pytest.mark.parametrize(("gang", "expected"), GANGS.values(), ids=GANGS)
def test_a_gang_is_rented_for_as_a_whole_at_the_least_cost(gang: Any, expected: list[str]) -> None:
    assert launched(plan(gangs=(gang,), offers=(ONE, FOUR, EIGHT))) == expected


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"offers": (make_offer(stock=2),)}, id="stock"),
        pytest.param({"offers": (make_offer(max_count=2),)}, id="max-nodes"),
        pytest.param({"caps": Caps(node_count=2)}, id="nodes"),
        pytest.param({"caps": Caps(gpu_count=11)}, id="gpus"),
        pytest.param({"caps": Caps(usd_per_hour=11)}, id="usd-per-hour"),
        pytest.param(
            {"params": PARAMS.model_copy(update={"launches_per_tick": 2})}, id="launches-per-tick"
        ),
        pytest.param({"failures": (make_failure("a"),)}, id="resting"),
    ],
)
def test_a_gang_gets_all_of_its_nodes_or_none(limits: dict[str, Any]) -> None:
    gang = late_gang(*[late(4)] * 3)

    assert launched(plan(gangs=(gang,))) == ["a"] * 3
    assert launched(plan(gangs=(gang,), **limits)) == []


def test_a_gang_is_never_split_over_offers() -> None:
    offers = (make_offer("a", stock=1), make_offer("b", stock=1))

    assert launched(plan(gangs=(late_gang(late(4), late(4)),), offers=offers)) == []


def test_a_gang_that_comes_second_waits_for_the_next_plan_rather_than_pay_more() -> None:
    params = PARAMS.model_copy(update={"launches_per_tick": 3})
    big, small = late_gang(*[late(4)] * 2, gang_id="b"), late_gang(*[late(3)] * 2, gang_id="s")
    dear = make_offer("dear", 8, 99.0)

    made = plan(gangs=(big, small), offers=(make_offer(), dear), params=params)

    assert launched(made) == ["a", "a"]
    assert [f.reason.code for f in made.findings] == ["launching", "ramp"]


def test_gangs_may_be_the_first_to_try_an_offer_that_failed() -> None:
    gang = late_gang(late(4), late(4))

    made = plan(gangs=(gang,), failures=(make_failure(until_s=NOW_S - 1),))

    assert launched(made) == ["a", "a"]


def test_ordered_offers_hold_for_gangs_too() -> None:
    first, second = make_offer("dear", 4, 99.0, rank=0), make_offer("cheap", 8, 1.0, rank=1)

    assert launched(plan(gangs=(late_gang(*[late(4)] * 2),), offers=(second, first))) == [
        "dear",
        "dear",
    ]


def test_a_gang_that_free_and_coming_nodes_take_together_rents_nothing() -> None:
    gang = late_gang(late(4), late(4))
    booting = make_instance(state=S.BOOTING)

    assert launched(plan(gangs=(gang,), nodes=(make_node("h", 4),), instances=(booting,))) == []


def test_a_gang_of_a_thousand_bundles_is_decided_like_a_small_one() -> None:
    gang = late_gang(*[late(1)] * 1_000)

    assert launched(plan(gangs=(gang,), offers=(EIGHT,))) == ["8"] * 125


# --- why ------------------------------------------------------------------------------------


def test_the_reason_of_a_launch_by_wait_has_its_numbers() -> None:
    made = plan(demands=(late(1, 6, ONPREM, CLOUD, memory=2**31),), offers=(EIGHT, _roomy()))

    launch = made.actions[0]
    assert isinstance(launch, Launch)
    assert launch.reason.code == "queue_wait"
    assert launch.reason.message == (
        "6 requests for 1 GPU, 2 GiB memory (site=onprem or site=cloud) waited 301 s, over the "
        "limit of 300 s; one roomy takes 6, at $7.50/h each"
    )
    assert launch.reason.facts == {
        "waiting_s": 301.0,
        "max_wait_s": 300.0,
        "request_count": 6,
        "unmet_gpu_count": 6.0,
        "takes_count": 6,
        "usd_per_hour": 7.5,
        "breach_s": NOW_S,
    }


def _roomy() -> Any:
    return make_offer("roomy", 8, 7.5, memory=2**40)


def test_the_reason_of_a_launch_by_size_names_that_limit_and_no_invented_age() -> None:
    params = PARAMS.model_copy(update={"pending_gpus": 8.0})
    made = plan(demands=(make_demand(1, 9, waiting_s=None),), params=params)

    reason = made.actions[0].reason
    assert reason.code == "queue_gpus"
    assert reason.message == (
        "9 requests for 1 GPU (anywhere) waited an unknown time, and the queue is over its limit "
        "of 8 GPUs; one a takes 4, at $4.00/h each"
    )
    assert reason.facts["pending_gpus"] == 8.0
    assert "waiting_s" not in reason.facts


@pytest.mark.parametrize(
    ("bundles", "expected"),
    [(1, "1 instance of a takes it, at $4.00/h each"), (2, "2 instances of a take it")],
)
def test_the_reason_of_a_launch_for_a_gang_says_how_many_take_it(
    bundles: int, expected: str
) -> None:
    made = plan(gangs=(late_gang(*[late(4)] * bundles),))

    assert made.actions[0].reason.message.startswith(f"a gang for {4 * bundles} GPU (anywhere)")
    assert expected in made.actions[0].reason.message
    assert made.actions[0].reason.facts["takes_count"] == 1


@pytest.mark.parametrize(("since_s", "expected_s"), [(0.0, NOW_S), (NOW_S - 77.0, 77.0)])
def test_a_launch_says_for_how_long_the_limit_has_been_broken(
    since_s: float, expected_s: float
) -> None:
    made = plan(demands=(late(1),), breach_since_s=since_s)

    assert made.actions[0].reason.facts["breach_s"] == expected_s


def test_a_broken_promise_rents_however_short_its_replicas_waited_and_says_so() -> None:
    late = make_demand(1, 2, waiting_s=0.0).model_copy(update={"why_now": "chat is slow"})
    others = make_demand(1, 2, waiting_s=0.0)

    made = plan(demands=(others, late))

    reason = made.actions[0].reason
    assert len(made.actions) == 1
    assert reason.code == "slo_breach"
    assert reason.message == (
        "2 requests for 1 GPU (anywhere) cannot wait: chat is slow; one a takes 2, at $4.00/h each"
    )


def test_a_broken_promise_must_last_as_long_as_any_other_limit() -> None:
    late = make_demand(1, 2, waiting_s=None).model_copy(update={"why_now": "chat is slow"})

    made = plan(demands=(late,), breach_since_s=None)

    assert made.actions == ()
    assert made.breach_since_s is not None
