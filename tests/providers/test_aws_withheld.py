"""What AWS leaves out of its offers, and the words for it."""

from __future__ import annotations

import pytest

from hybrid.core.errors import ThrottledError
from hybrid.core.models import Offer
from hybrid.core.models.withheld import Withheld
from hybrid.core.ports.pools import CandidProvider, OfflineProvider
from providers.aws import AwsProvider
from tests.providers.aws_cloud import POOL, TYPE, AwsCloud

pytestmark = pytest.mark.slow

SPOT = {k: v for k, v in POOL.items() if k != "usd_per_hour"} | {"use_spot": True}
SPOT_ID = "aws/us-east-1/us-east-1a/g5.xlarge/spot"


def withheld(provider: AwsProvider) -> list[Withheld]:
    return [item for item in provider.pool_offers() if isinstance(item, Withheld)]


def test_it_can_say_both(aws: AwsCloud) -> None:
    assert isinstance(aws.provider(), CandidProvider)
    assert isinstance(aws.provider(), OfflineProvider)


def test_a_spot_pool_without_a_price_says_where_none_was_told(aws: AwsCloud) -> None:
    aws.pools = [SPOT, POOL]

    (found,) = withheld(aws.provider())

    assert (found.offer_id, found.reason.code) == (SPOT_ID, "no_price")
    assert f"no spot price of the last hour for {TYPE} in us-east-1a" in found.reason.message
    assert found.reason.message.endswith("or write usd_per_hour")


def test_a_spot_price_above_the_limit_is_told_with_both(aws: AwsCloud) -> None:
    aws.pools = [SPOT | {"spot_limit_usd_per_hour": 0.5}]
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.51}

    (found,) = withheld(aws.provider())

    assert found.reason.code == "spot_above_limit"
    assert "$0.51/h, is above spot_limit_usd_per_hour, $0.5/h" in found.reason.message
    assert found.at_most_usd_per_hour == 0.5


def test_a_region_in_trouble_is_told(aws: AwsCloud) -> None:
    aws.regions["us-west-2"] = aws.regions["us-east-1"] | {"subnets": {}}
    aws.pools = [SPOT, POOL | {"infra": "aws/us-west-2/us-west-2a"}]
    aws.controls.spot_usd_per_hour = {}
    aws.controls.fail("DescribeSpotPriceHistory", "RequestLimitExceeded")

    found = aws.provider().pool_offers()

    assert [item.offer_id for item in found if isinstance(item, Offer)] == [
        "aws/us-west-2/us-west-2a/g5.xlarge/on_demand"
    ]
    (left_out,) = (item for item in found if isinstance(item, Withheld))
    assert left_out.reason.code == "unreadable"
    assert "us-east-1" in left_out.reason.message


def test_nothing_that_could_be_read_is_still_an_error(aws: AwsCloud) -> None:
    aws.pools = [SPOT]
    aws.controls.fail("DescribeSpotPriceHistory", "RequestLimitExceeded")

    with pytest.raises(ThrottledError):
        aws.provider().pool_offers()


def test_offline_it_makes_no_call_and_answers_for_each_pool_in_order(aws: AwsCloud) -> None:
    aws.regions["us-west-2"] = aws.regions["us-east-1"] | {"subnets": {}}
    vague = {"infra": "aws/us-west-2/us-west-2a", "instance_type": "m5.large", "usd_per_hour": 0.1}
    aws.pools = [vague, SPOT | {"spot_limit_usd_per_hour": 0.5}, POOL]

    inside, spot, offer = aws.provider().offline_offers()

    assert isinstance(inside, Withheld)
    assert inside.reason.code == "not_in_catalog"
    assert isinstance(spot, Withheld)
    assert (spot.reason.code, spot.at_most_usd_per_hour) == ("no_price", 0.5)
    assert isinstance(offer, Offer)
    assert offer.usd_per_hour == 1.006
    assert aws.controls.calls == []
