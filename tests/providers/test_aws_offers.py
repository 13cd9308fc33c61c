"""What AWS offers: shapes from the configuration or from AWS, prices from either."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from hybrid.core.catalog import Catalog, CatalogRow
from hybrid.core.errors import AuthError, InvalidRequestError, ThrottledError
from hybrid.core.models import Market, Offer
from hybrid.core.policy.market import rented_labels
from providers.aws.market import REFRESH_S, STALE_S
from tests.providers.aws_cloud import POOL, TYPE, AwsCloud
from tests.world.clock import VirtualClock

pytestmark = pytest.mark.slow

VAGUE: dict[str, Any] = {
    "infra": "aws/us-east-1/us-east-1a",
    "instance_type": "p4d.24xlarge",
    "usd_per_hour": 32.77,
}
SPOT = {k: v for k, v in POOL.items() if k != "usd_per_hour"} | {"use_spot": True}


@pytest.fixture
def clock(aws: AwsCloud) -> VirtualClock:
    clock = VirtualClock()
    aws.clock = clock
    return clock


def prices(offers: list[Offer]) -> dict[str, float]:
    return {offer.offer_id: offer.usd_per_hour for offer in offers}


def test_an_offer_has_all_that_its_pool_says(aws: AwsCloud) -> None:
    aws.pools = [POOL | {"max_nodes": 3, "rank": 2, "boot_time": "5m", "labels": {"team": "nlp"}}]

    (offer,) = aws.provider().offers()

    assert offer.offer_id == "aws/us-east-1/us-east-1a/g5.xlarge/on_demand"
    assert (offer.region, offer.zone, offer.instance_type) == ("us-east-1", "us-east-1a", TYPE)
    assert offer.shape == {"CPU": 4, "memory": 8 * 2**30, "GPU": 1, "accelerator_type:A10G": 1}
    assert (offer.accelerator, offer.gpu_count, offer.usd_per_hour) == ("A10G", 1, 1.006)
    assert (offer.max_count, offer.rank, offer.boot_s) == (3, 2, 300.0)
    assert offer.stock_count is None  # AWS does not say
    assert rented_labels(offer)["team"] == "nlp"
    assert aws.controls.calls == []


def test_what_a_pool_leaves_out_is_asked_once(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.pools = [VAGUE, VAGUE | {"infra": "aws/us-east-1/us-east-1b"}]
    provider = aws.provider()

    (offer, _) = provider.offers()
    clock.advance(86_400)
    provider.offers()

    assert offer.shape["CPU"] == 96
    assert offer.shape["GPU"] == 8
    assert offer.shape["accelerator_type:A100"] == 1
    assert offer.shape["memory"] == int(1152 * 2**30 * 0.6)
    assert (offer.accelerator, offer.gpu_count) == ("A100", 8)
    assert aws.controls.count("DescribeInstanceTypes") == 1


def test_what_a_pool_says_wins_over_what_aws_says(aws: AwsCloud) -> None:
    aws.pools = [VAGUE | {"accelerators": "A100-40G:8", "memory": "100GiB"}]

    (offer,) = aws.provider().offers()

    assert offer.shape == {
        "CPU": 96,
        "memory": 100 * 2**30,
        "GPU": 8,
        "accelerator_type:A100-40G": 1,
    }


def test_a_type_without_gpus_has_none(aws: AwsCloud) -> None:
    aws.pools = [VAGUE | {"instance_type": "m5.large"}]

    (offer,) = aws.provider().offers()

    assert set(offer.shape) == {"CPU", "memory"}
    assert (offer.accelerator, offer.gpu_count) == ("", 0)


def test_a_type_that_does_not_exist_is_refused(aws: AwsCloud) -> None:
    aws.pools = [VAGUE | {"instance_type": "p99.huge"}]

    with pytest.raises(InvalidRequestError, match=r"p99\.huge"):
        aws.provider().offers()


def test_a_spot_pool_has_the_price_of_its_zone(aws: AwsCloud) -> None:
    aws.pools = [SPOT, SPOT | {"infra": "aws/us-east-1/us-east-1b"}]
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.41, (TYPE, "us-east-1b"): 0.52}

    offers = aws.provider().offers()

    assert [(o.zone, o.usd_per_hour) for o in offers] == [
        ("us-east-1a", 0.41),
        ("us-east-1b", 0.52),
    ]
    assert {offer.market for offer in offers} == {Market.SPOT}
    assert aws.controls.count() == 1


def test_a_spot_pool_of_a_region_has_the_price_of_its_dearest_zone(aws: AwsCloud) -> None:
    """A cap must hold wherever the instance lands."""
    aws.pools = [SPOT | {"infra": "aws/us-east-1"}]
    aws.controls.spot_usd_per_hour = {
        (TYPE, "us-east-1a"): 0.41,
        (TYPE, "us-east-1b"): 0.52,
        (TYPE, "us-east-1c"): 9.99,  # no subnet there
    }

    (offer,) = aws.provider().offers()

    assert (offer.zone, offer.usd_per_hour) == ("", 0.52)


def test_a_price_of_the_configuration_needs_no_call(aws: AwsCloud) -> None:
    aws.pools = [POOL | {"use_spot": True, "usd_per_hour": 0.5}]

    (offer,) = aws.provider().offers()

    assert offer.usd_per_hour == 0.5
    assert aws.controls.calls == []


def test_a_spot_price_above_the_limit_is_no_offer(aws: AwsCloud) -> None:
    aws.pools = [SPOT | {"spot_limit_usd_per_hour": 0.5}]
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.51}
    assert aws.provider().offers() == []

    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.49}

    assert [offer.usd_per_hour for offer in aws.provider().offers()] == [0.49]


def test_a_spot_price_above_on_demand_is_no_offer(aws: AwsCloud) -> None:
    aws.pools = [SPOT]
    aws.catalog = Catalog(
        rows=(
            CatalogRow(
                provider="aws",
                region="us-east-1",
                instance_type=TYPE,
                gpu="A10G",
                gpu_count=1,
                on_demand_per_hour=1.006,
                source="s",
                as_of=dt.datetime.now(tz=dt.UTC).date(),
            ),
        )
    )
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 1.1}
    assert aws.provider().offers() == []

    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 1.0}

    assert [offer.usd_per_hour for offer in aws.provider().offers()] == [1.0]


def test_spot_prices_are_asked_for_now_and_then(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.pools = [SPOT]
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.41}
    provider = aws.provider()
    provider.offers()
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.61}
    clock.advance(REFRESH_S - 1)
    assert provider.offers()[0].usd_per_hour == 0.41

    clock.advance(1)

    assert provider.offers()[0].usd_per_hour == 0.61
    assert aws.controls.count("DescribeSpotPriceHistory") == 2


def test_an_unknown_price_is_no_offer(aws: AwsCloud) -> None:
    aws.pools = [SPOT, POOL]

    (offer,) = aws.provider().offers()

    assert offer.market is Market.ON_DEMAND


def test_an_old_price_stands_in_for_a_while_only(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.pools = [SPOT]
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.41}
    provider = aws.provider()
    provider.offers()
    aws.controls.spot_usd_per_hour = {}
    clock.advance(STALE_S - 1)
    assert len(provider.offers()) == 1

    clock.advance(1)

    assert provider.offers() == []


def test_spot_prices_that_may_not_be_read_cost_the_spot_pools_only(aws: AwsCloud) -> None:
    aws.pools = [SPOT, POOL]
    aws.controls.fail("DescribeSpotPriceHistory", "UnauthorizedOperation")

    assert [offer.market for offer in aws.provider().offers()] == ["on_demand"]
    aws.pools = [SPOT]
    aws.controls.fail("DescribeSpotPriceHistory", "UnauthorizedOperation")
    with pytest.raises(AuthError, match="grant the permission"):
        aws.provider().offers()


def test_a_type_that_is_misspelt_costs_its_own_pool_only(aws: AwsCloud) -> None:
    vague = {k: v for k, v in POOL.items() if k != "cpus"}
    aws.pools = [vague | {"instance_type": "zz9.large"}, vague]

    assert [offer.instance_type for offer in aws.provider().offers()] == [TYPE]


def test_a_region_in_trouble_costs_its_own_offers_only(aws: AwsCloud) -> None:
    aws.regions["us-west-2"] = aws.regions["us-east-1"] | {"subnets": {}}
    aws.pools = [SPOT, SPOT | {"infra": "aws/us-west-2/us-west-2a"}]
    aws.controls.spot_usd_per_hour = {(TYPE, z): 0.4 for z in ("us-east-1a", "us-west-2a")}
    aws.controls.fail("DescribeSpotPriceHistory", "Unavailable")

    offers = aws.provider().offers()

    assert [offer.region for offer in offers] == ["us-west-2"]


def test_nothing_that_could_be_read_is_an_error(aws: AwsCloud) -> None:
    aws.pools = [SPOT]
    aws.controls.fail("DescribeSpotPriceHistory", "RequestLimitExceeded")

    with pytest.raises(ThrottledError):
        aws.provider().offers()


def test_prices_of_a_failed_reading_are_the_last_ones(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.pools = [SPOT]
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.41}
    provider = aws.provider()
    before = prices(list(provider.offers()))
    clock.advance(REFRESH_S)
    aws.controls.fail("DescribeSpotPriceHistory", "Unavailable")

    assert prices(list(provider.offers())) == before, "the last ones stand in"
    assert prices(list(provider.offers())) == before
