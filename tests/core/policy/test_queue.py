"""Tests of the sorted queue: free and coming capacity, the breach and its age."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.core.models import InstanceState, NodeStatus, Spread
from hybrid.core.policy.pieces import Pieces
from hybrid.core.policy.plan import Host
from hybrid.core.policy.queue import Queue
from tests.core.make import (
    CLOUD,
    NOW_S,
    ONPREM,
    make_demand,
    make_gang,
    make_instance,
    make_node,
    make_offer,
    make_params,
    make_rented,
    make_snapshot,
)

S, N = InstanceState, NodeStatus
PARAMS = make_params(max_wait_s=300.0, stabilisation_s=30.0)
OFFER = make_offer(gpus=4)


def make_queue(*, params: Any = PARAMS, **snapshot: Any) -> Queue:
    return Queue.of(make_snapshot(**{"offers": (OFFER,), **snapshot}), params)


def met_count(queue: Queue) -> tuple[int, int]:
    """Return requests placed now and on what is coming."""
    return sum(m.placed.now for m in queue.met), sum(m.placed.coming for m in queue.met)


# --- what capacity counts -------------------------------------------------------------------

ONE = make_demand(1, 100)
CAPACITY = {
    "idle-node": ({"nodes": (make_node("a", 4),)}, (4, 0)),
    "busy-node": ({"nodes": (make_node("a", 4, free=1),)}, (1, 0)),
    "full-node": ({"nodes": (make_node("a", 4, free=0),)}, (0, 0)),
    "draining-node": ({"nodes": (make_node("a", 4, status=N.DRAINING),)}, (0, 0)),
    "dead-node": ({"nodes": (make_node("a", 4, status=N.DEAD),)}, (0, 0)),
    "joining-host": (
        {"hosts": (Host(name="a", shape={"GPU": 2.0}, is_coming=True),)},
        (0, 2),
    ),
    "host-that-is-not-coming": ({"hosts": (Host(name="a", shape={"GPU": 2.0}),)}, (0, 0)),
    "requested": ({"instances": (make_instance(state=S.REQUESTED),)}, (0, 4)),
    "booting": ({"instances": (make_instance(state=S.BOOTING),)}, (0, 4)),
    "booting-until-its-deadline": (
        {"instances": (make_instance(state=S.BOOTING, deadline_at_s=NOW_S + 0.1),)},
        (0, 4),
    ),
    "booting-at-its-deadline": (
        {"instances": (make_instance(state=S.BOOTING, deadline_at_s=NOW_S),)},
        (0, 0),
    ),
    "booting-but-quarantined": (
        {"instances": (make_instance(state=S.BOOTING, quarantine="a bug"),)},
        (0, 0),
    ),
    "lost": ({"instances": (make_instance(state=S.LOST),)}, (0, 0)),
    "terminating": ({"instances": (make_instance(state=S.TERMINATING),)}, (0, 0)),
    "running-without-a-node": ({"instances": (make_instance(state=S.RUNNING),)}, (0, 0)),
}


@pytest.mark.parametrize(("snapshot", "expected"), CAPACITY.values(), ids=CAPACITY)
def test_what_counts_as_capacity(snapshot: dict[str, Any], expected: tuple[int, int]) -> None:
    assert met_count(make_queue(demands=(ONE,), **snapshot)) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(S.RUNNING, (4, 0), id="running"),
        pytest.param(S.BOOTING, (4, 0), id="joined-in-this-very-moment"),
        pytest.param(S.DRAINING, (0, 0), id="a-drain-ray-has-not-taken-yet"),
        pytest.param(S.TERMINATING, (0, 0), id="terminating"),
        pytest.param(S.LOST, (0, 0), id="lost"),
    ],
)
def test_a_rented_node_counts_once_and_only_while_it_stays(
    state: InstanceState, expected: tuple[int, int]
) -> None:
    instance, node = make_rented(state=state)

    assert met_count(make_queue(demands=(ONE,), instances=(instance,), nodes=(node,))) == expected


def test_a_booting_instance_whose_node_died_still_counts_as_coming() -> None:
    instance, node = make_rented(state=S.BOOTING, status=N.DEAD)

    assert met_count(make_queue(demands=(ONE,), instances=(instance,), nodes=(node,))) == (0, 4)


def test_what_does_not_fit_is_unmet_and_the_rest_is_met() -> None:
    queue = make_queue(demands=(make_demand(1, 6),), nodes=(make_node("a", 4),))

    assert [(m.demand.count, m.placed.count) for m in queue.met] == [(6, 4)]
    assert [(u.count, u.gpu_count) for u in queue.unmet] == [(2, 2.0)]


def test_late_work_then_large_work_gets_the_room() -> None:
    late, big, small = (
        make_demand(1, 2, waiting_s=301),
        make_demand(2, 1),
        make_demand(1, 9, CPU=0.5),
    )
    node = make_node("a", 4, CPU=8)

    queue = make_queue(demands=(small, big, late), nodes=(node,))

    assert [(m.demand.shape["GPU"], m.placed.count) for m in queue.met] == [(1, 2), (2, 1)]


def test_gangs_come_before_single_requests_and_the_largest_first() -> None:
    small, large = make_gang(make_demand(2), gang_id="s"), make_gang(make_demand(3), gang_id="l")

    queue = make_queue(gangs=(small, large), demands=(ONE,), nodes=(make_node("a", 4),))

    assert [(m.gang.gang_id if m.gang else "", m.placed.count) for m in queue.met] == [
        ("l", 1),
        ("", 1),
    ]


def test_of_equal_gangs_the_one_that_waits_longest_comes_first() -> None:
    gangs = [
        make_gang(make_demand(3), gang_id=name, waiting_s=age_s)
        for name, age_s in (("a", 5.0), ("b", 50.0), ("c", None))
    ]

    queue = make_queue(gangs=tuple(gangs), nodes=(make_node("h", 4),))

    assert [m.gang.gang_id for m in queue.met if m.gang] == ["b"]
    assert [u.gang.gang_id for u in queue.unmet if u.gang] == ["a", "c"]


@pytest.mark.parametrize(
    "demands",
    [
        pytest.param((make_demand(3, 2), make_demand(2, 3)), id="as-launched-is-better"),
        pytest.param(
            (make_demand(4, 1, waiting_s=301), make_demand(8, 1)), id="best-fit-is-better"
        ),
    ],
)
def test_the_better_way_onto_coming_nodes_is_taken(demands: tuple[Any, ...]) -> None:
    booting = (
        make_instance("i-1", S.BOOTING, offer=make_offer("big", 8), age_s=20.0),
        make_instance("i-2", S.BOOTING, offer=OFFER, age_s=10.0),
    )

    queue = make_queue(demands=demands, instances=booting[::-1])

    assert queue.unmet == ()
    assert met_count(queue) == (0, sum(d.count for d in demands))


# --- what may be rented ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        pytest.param(make_demand(4), True, id="an-offer-holds-it"),
        pytest.param(make_demand(5), False, id="no-offer-holds-it"),
        pytest.param(make_demand(1, 1, ONPREM), False, id="onprem-only"),
        pytest.param(make_demand(1, 1, ONPREM, CLOUD), True, id="onprem-preferred"),
    ],
)
def test_work_is_rentable_when_some_offer_holds_it(demand: Any, expected: bool) -> None:
    queue = make_queue(demands=(demand,), offers=(make_offer(stock=0),))

    assert [u.is_rentable for u in queue.unmet] == [expected]


@pytest.mark.parametrize(
    ("gang", "expected"),
    [
        pytest.param(make_gang(make_demand(4), make_demand(4)), True, id="on-two-nodes"),
        pytest.param(
            make_gang(make_demand(4), make_demand(4), spread=Spread.STRICT_PACK),
            False,
            id="strict-pack-beyond-one-node",
        ),
        pytest.param(make_gang(make_demand(4), make_demand(5)), False, id="one-bundle-too-large"),
        pytest.param(
            make_gang(make_demand(1, 1, CLOUD), make_demand(1, 1, ONPREM)),
            False,
            id="a-bundle-for-each-site",
        ),
        pytest.param(
            make_gang(make_demand(4), make_demand(0, 1, CPU=32)),
            False,
            id="each-bundle-has-an-offer-but-none-holds-both",
        ),
    ],
)
def test_a_gang_is_rentable_when_one_offer_holds_every_bundle(gang: Any, expected: bool) -> None:
    queue = make_queue(gangs=(gang,), offers=(OFFER, make_offer("cpu", 0, CPU=64)))

    assert [u.is_rentable for u in queue.unmet] == [expected]


# --- the breach -----------------------------------------------------------------------------

BREACH = {
    "just-before-the-wait": (299.9, None, 1, ""),
    "at-the-wait": (300.0, None, 1, ""),
    "after-the-wait": (300.1, None, 1, "queue_wait"),
    "age-not-known": (None, None, 1, ""),
    "gpus-below": (0.0, 8.0, 7, ""),
    "gpus-at": (0.0, 8.0, 8, ""),
    "gpus-above": (0.0, 8.0, 9, "queue_gpus"),
    "gpus-above-with-age-not-known": (None, 8.0, 9, "queue_gpus"),
    "any-gpu-is-too-many": (0.0, 0.0, 1, "queue_gpus"),
    "both": (301.0, 8.0, 9, "queue_wait"),
}


@pytest.mark.parametrize(
    ("waiting_s", "pending_gpus", "count", "code"), BREACH.values(), ids=BREACH
)
def test_the_limit_is_broken_by_wait_or_by_size(
    waiting_s: float | None, pending_gpus: float | None, count: int, code: str
) -> None:
    queue = make_queue(
        demands=(make_demand(1, count, waiting_s=waiting_s),),
        params=PARAMS.model_copy(update={"pending_gpus": pending_gpus}),
    )

    assert queue.breach_code == code
    assert (queue.breach_since_s is not None) == bool(code)


def test_both_limits_may_be_broken_at_once_by_different_work() -> None:
    late, many = make_demand(1, 1, waiting_s=301), make_demand(2, 10)
    queue = make_queue(demands=(late, many), params=PARAMS.model_copy(update={"pending_gpus": 8.0}))

    assert queue.breach_code == "queue_wait"
    assert queue.is_over_gpus
    assert all(queue.may_rent(u) for u in queue.unmet)


def test_only_work_that_may_be_rented_for_breaks_a_limit() -> None:
    demands = (make_demand(1, 99, ONPREM, waiting_s=9_999), make_demand(9, 9, waiting_s=9_999))
    queue = make_queue(demands=demands, params=PARAMS.model_copy(update={"pending_gpus": 0.0}))

    assert queue.breach_code == ""
    assert not any(queue.may_rent(u) for u in queue.unmet)


def test_work_that_free_or_coming_capacity_takes_breaks_no_limit() -> None:
    queue = make_queue(
        demands=(make_demand(1, 8, waiting_s=9_999),),
        nodes=(make_node("a", 4),),
        instances=(make_instance(state=S.BOOTING),),
    )

    assert (queue.breach_code, queue.breach_since_s) == ("", None)


@pytest.mark.parametrize(
    ("since_s", "expected_since_s", "is_stable"),
    [
        pytest.param(None, NOW_S, False, id="first-seen-now"),
        pytest.param(NOW_S - 29.9, NOW_S - 29.9, False, id="just-before"),
        pytest.param(NOW_S - 30.0, NOW_S - 30.0, True, id="at"),
        pytest.param(NOW_S - 30.1, NOW_S - 30.1, True, id="after"),
        pytest.param(0.0, 0.0, True, id="since-the-beginning-of-time"),
        pytest.param(NOW_S + 500.0, NOW_S, False, id="the-clock-went-back"),
    ],
)
def test_a_breach_is_stable_after_it_lasted(
    since_s: float | None, expected_since_s: float, is_stable: bool
) -> None:
    queue = make_queue(demands=(make_demand(waiting_s=301),), breach_since_s=since_s)

    assert (queue.breach_since_s, queue.is_breach_stable) == (expected_since_s, is_stable)


def test_no_stabilisation_spends_at_once() -> None:
    params = PARAMS.model_copy(update={"stabilisation_s": 0.0})
    queue = make_queue(demands=(make_demand(waiting_s=301),), breach_since_s=None, params=params)

    assert queue.is_breach_stable


# --- the empty home -------------------------------------------------------------------------


def test_home_holds_hosts_once_whether_they_are_nodes_or_not() -> None:
    gang = make_gang(*[make_demand(4, 1, ONPREM)] * 3)
    hosts = tuple(
        Host(name=name, shape={"GPU": 4.0}, labels={"site": "onprem"}) for name in ("a", "b")
    )
    queue = make_queue(
        gangs=(gang,),
        hosts=hosts,
        nodes=(make_node("a", 4, free=0), make_node("b", 4, status=N.DEAD)),
    )

    assert queue.home.has_space(make_demand(4, 1, ONPREM))
    assert queue.home.copy().take_gang(Pieces.of(gang)) is None
    assert queue.home.copy().take_gang(Pieces.of(make_gang(*gang.bundles[:2]))) is not None


def test_home_counts_a_draining_node_as_if_nothing_ran_on_it() -> None:
    queue = make_queue(
        demands=(make_demand(4, 1, ONPREM),), nodes=(make_node("a", 4, free=0, status=N.DRAINING),)
    )

    assert queue.home.has_space(make_demand(4, 1, ONPREM))
