"""Failures reach exactly the offers inside their scope."""

from __future__ import annotations

import pytest

from hybrid.core.errors import AuthError, CapacityError, ProviderError, QuotaError, Scope
from hybrid.core.scopes import scope_key, scope_keys
from tests.world.world import make_offer

AWS = {"provider": "aws", "region": "eu-west-1", "zone": "eu-west-1a", "offer_id": "aws/x"}


def test_keys_of_an_offer_go_from_narrow_to_wide() -> None:
    assert scope_keys(make_offer(**AWS)) == (
        "aws/x",
        "zone:aws/eu-west-1/eu-west-1a",
        "region:aws/eu-west-1",
        "account:aws",
    )


def test_a_place_that_is_not_there_widens() -> None:
    offer = make_offer(provider="local", offer_id="local/x")

    assert scope_key(offer, Scope.ZONE) == "account:local"
    assert scope_keys(offer) == ("local/x", "account:local")


def test_zones_of_two_regions_with_one_name_differ() -> None:
    one = make_offer(**AWS)
    other = make_offer(**{**AWS, "region": "eu-west-2"})

    assert scope_key(one, Scope.ZONE) != scope_key(other, Scope.ZONE)


@pytest.mark.parametrize(
    ("kind", "scope"),
    [
        (ProviderError, Scope.POOL),
        (CapacityError, Scope.POOL),
        (QuotaError, Scope.REGION),
        (AuthError, Scope.ACCOUNT),
    ],
)
def test_an_error_reaches_as_far_as_is_usual_unless_it_says_otherwise(
    kind: type[ProviderError], scope: Scope
) -> None:
    assert kind("x", provider="aws").scope is scope
    assert kind("x", provider="aws", scope=Scope.ZONE).scope is Scope.ZONE
