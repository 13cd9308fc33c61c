"""Tests of how far failures reach: which offers rest, and what one probe stands for."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.core.models import InstanceState, Offer
from hybrid.core.policy.decide import decide
from hybrid.core.policy.memory import Memory
from hybrid.core.policy.plan import Launch
from tests.core.make import (
    NOW_S,
    make_demand,
    make_failure,
    make_instance,
    make_offer,
    make_params,
    make_snapshot,
)

S = InstanceState


def placed(offer_id: str, *, provider: str = "sim", region: str = "eu", zone: str = "") -> Offer:
    place = {"region": region, "zone": zone}
    return make_offer(offer_id, 1, provider=provider).model_copy(update=place)


A1, A2 = placed("a1", zone="eu-a"), placed("a2", zone="eu-a")
B1, US, OTHER = placed("b1", zone="eu-b"), placed("us", region="us"), placed("o", provider="other")
SHOP = (A1, A2, B1, US, OTHER)
REACH = {
    "an-offer": ("a1", {"a1"}),
    "a-zone": ("zone:sim/eu/eu-a", {"a1", "a2"}),
    "a-region": ("region:sim/eu", {"a1", "a2", "b1"}),
    "an-account": ("account:sim", {"a1", "a2", "b1", "us"}),
    "something-that-is-no-longer-offered": ("gone", set()),
}


def launched(**snapshot: Any) -> list[str]:
    """Return what is launched for ever so much work that any offer could take."""
    work = (make_demand(1, 100, waiting_s=9_999.0),)
    made = decide(make_snapshot(demands=work, offers=SHOP, **snapshot), make_params())
    return [a.offer.offer_id for a in made.actions if isinstance(a, Launch)]


@pytest.mark.parametrize(("key", "reached"), REACH.values(), ids=REACH)
def test_a_failure_rests_exactly_what_it_reaches(key: str, reached: set[str]) -> None:
    resting = make_failure(key, until_s=NOW_S + 1)

    assert set(Memory.of(SHOP, [resting], []).by_offer) == reached
    assert not reached & set(launched(failures=(resting,)))


@pytest.mark.parametrize(("key", "reached"), REACH.values(), ids=REACH)
def test_one_launch_probes_all_that_a_failure_reached(key: str, reached: set[str]) -> None:
    names = launched(failures=(make_failure(key, until_s=NOW_S),))

    assert sum(name in reached for name in names) <= 1


@pytest.mark.parametrize(
    ("offer", "is_under_way"),
    [
        pytest.param(A2, True, id="within-its-reach"),
        pytest.param(B1, False, id="beyond-its-reach"),
    ],
)
def test_a_probe_under_way_is_one_within_the_reach(offer: Offer, is_under_way: bool) -> None:
    failures = (make_failure("zone:sim/eu/eu-a", until_s=NOW_S),)
    booting = make_instance(state=S.BOOTING, offer=offer)

    assert bool(Memory.of(SHOP, failures, [booting]).probed) == is_under_way
    assert ({"a1", "a2"} & set(launched(failures=failures, instances=(booting,))) == set()) == (
        is_under_way
    )


def test_of_several_failures_the_one_that_lasts_longest_counts() -> None:
    failures = (
        make_failure("a1", until_s=NOW_S - 5),
        make_failure("region:sim/eu", until_s=NOW_S + 60),
        make_failure("account:sim", until_s=NOW_S + 5),
    )

    memory = Memory.of(SHOP, failures, [])

    assert (memory.key_of("a1"), memory.key_of("us")) == ("region:sim/eu", "account:sim")
    assert memory.key_of("o") == ""


def test_nothing_failed_means_nothing_to_remember() -> None:
    assert Memory.of(SHOP, [], [make_instance(state=S.BOOTING)]) == Memory({}, frozenset())
