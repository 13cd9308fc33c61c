"""What rests: which offers a failure reaches, and in which order it is told."""

from __future__ import annotations

import pytest

from hybrid.core.models import Offer, OfferFailure
from hybrid.core.rests import rest_views
from hybrid.core.scopes import scope_of

NOW_S = 1_000.0


def offer(zone: str, region: str = "r1", provider: str = "aws") -> Offer:
    return Offer(
        offer_id=f"{provider}/{region}/{zone}/big/on_demand",
        provider=provider,
        region=region,
        zone=zone,
        instance_type="big",
        shape={"GPU": 8.0},
        gpu_count=8,
        usd_per_hour=1.0,
    )


OFFERS = (offer("a"), offer("b"), offer("c", "r2"), offer("d", provider="gcp"))


def failure(key: str, until_s: float = NOW_S + 60) -> OfferFailure:
    return OfferFailure(
        key=key, failure_count=2, until_s=until_s, error="CapacityError", message="sold out"
    )


@pytest.mark.parametrize(
    ("key", "scope", "reached"),
    [
        ("aws/r1/a/big/on_demand", "offer", ["a"]),
        ("zone:aws/r1/b", "zone", ["b"]),
        ("region:aws/r1", "region", ["a", "b"]),
        ("account:aws", "account", ["a", "b", "c"]),
        ("account:baidu", "account", []),
        ("odd:thing", "offer", []),
    ],
)
def test_a_failure_names_the_offers_that_it_reaches(
    key: str, scope: str, reached: list[str]
) -> None:
    (view,) = rest_views([failure(key)], OFFERS, now_s=NOW_S)

    assert (view.key, view.scope) == (key, scope) == (key, scope_of(key))
    assert [name.split("/")[2] for name in view.offer_ids] == reached
    assert (view.error, view.message, view.failure_count) == ("CapacityError", "sold out", 2)
    assert (view.until_at_s, view.is_over) == (NOW_S + 60, False)


def test_what_may_be_tried_again_is_told_so_and_comes_last() -> None:
    failures = [failure("account:gcp", NOW_S), failure("account:aws", NOW_S + 1)]

    views = rest_views(failures, OFFERS, now_s=NOW_S)

    assert [(view.key, view.is_over) for view in views] == [
        ("account:aws", False),
        ("account:gcp", True),
    ]


def test_nothing_failed_and_nothing_rests() -> None:
    assert rest_views((), OFFERS, now_s=NOW_S) == ()
