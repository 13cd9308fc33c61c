"""On-demand prices from AWS's price list: asked rarely, dated, and never guessed."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from hybrid.core.catalog import Catalog, CatalogRow
from hybrid.core.models import Offer
from hybrid.core.models.withheld import Offered, Withheld
from hybrid.core.prices import DAY_S, DEFAULT_MAX_AGE_S
from providers.aws.listprices import AGAIN_S, FORBIDDEN_S, LOOK_S
from providers.aws.params import Params
from tests.emulators.aws import IMAGE
from tests.emulators.aws.pricing import product
from tests.providers.aws_cloud import POOL, TYPE, AwsCloud
from tests.providers.contract import launch, make_spec
from tests.world.clock import VirtualClock

pytestmark = pytest.mark.slow

ASK = "GetProducts"
BARE = {k: v for k, v in POOL.items() if k != "usd_per_hour"}
BARE_B = BARE | {"infra": "aws/us-east-1/us-east-1b"}
OTHER = BARE | {"instance_type": "g5.2xlarge", "cpus": 8}
HERE = (TYPE, "us-east-1")


@pytest.fixture
def clock(aws: AwsCloud) -> VirtualClock:
    clock = VirtualClock(now_s=time.time())
    aws.clock = clock
    aws.pools = [BARE]
    return clock


def shipped(**changes: object) -> Catalog:
    row = CatalogRow(
        provider="aws",
        region="us-east-1",
        instance_type=TYPE,
        gpu="A10G",
        gpu_count=1,
        on_demand_per_hour=1.006,
        source="s",
        as_of=dt.datetime.now(tz=dt.UTC).date(),
    )
    return Catalog(rows=(row.model_copy(update=dict(changes)),))


def usd(item: Offered) -> float:
    assert isinstance(item, Offer), item
    return item.usd_per_hour


def reason(item: Offered) -> tuple[str, str]:
    assert isinstance(item, Withheld), item
    return item.reason.code, item.reason.message


def test_a_type_that_no_catalog_knows_costs_what_aws_says(
    aws: AwsCloud, clock: VirtualClock
) -> None:
    aws.controls.list_prices = {HERE: "0.8520000000"}

    (offer,) = aws.provider().pool_offers()

    assert usd(offer) == 0.852
    (call,) = aws.controls.calls
    assert (call.endpoint, call.action, call.region) == ("pricing", ASK, "us-east-1")


def test_what_aws_says_goes_before_the_catalog(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.catalog = shipped()
    aws.controls.list_prices = {HERE: "0.8520000000"}

    assert usd(aws.provider().pool_offers()[0]) == 0.852


def test_a_pool_with_a_price_of_its_own_is_not_asked_about(
    aws: AwsCloud, clock: VirtualClock
) -> None:
    aws.pools = [POOL]

    assert usd(aws.provider().pool_offers()[0]) == 1.006
    assert aws.controls.calls == []


def test_each_type_is_asked_once_and_again_after_a_day(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.pools = [BARE, BARE_B, OTHER]
    aws.controls.list_prices = {HERE: "0.85", ("g5.2xlarge", "us-east-1"): "1.2"}
    provider = aws.provider()
    for _ in range(3):
        assert [usd(item) for item in provider.pool_offers()] == [0.85, 0.85, 1.2]
    assert aws.controls.count(ASK) == 2
    aws.controls.list_prices[HERE] = "0.95"
    clock.advance(DAY_S - 1)
    assert usd(provider.pool_offers()[0]) == 0.85

    clock.advance(1)

    assert usd(provider.pool_offers()[0]) == 0.95
    assert aws.controls.count(ASK) == 4


def test_how_often_is_a_setting(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.more = {"price_refresh": "1h"}
    aws.controls.list_prices = {HERE: "0.85"}
    provider = aws.provider()
    provider.pool_offers()

    clock.advance(3_600)
    provider.pool_offers()

    assert aws.controls.count(ASK) == 2


@pytest.mark.parametrize("value", ["off", False])
def test_it_can_be_turned_off(aws: AwsCloud, clock: VirtualClock, value: object) -> None:
    aws.more = {"price_refresh": value}
    aws.controls.list_prices = {HERE: "0.85"}

    code, words = reason(aws.provider().pool_offers()[0])

    assert code == "not_in_catalog"
    assert "providers.aws.price_refresh is off" in words
    assert aws.controls.calls == []


@pytest.mark.parametrize("value", ["1m", 0, -1, "often", float("nan")])
def test_it_cannot_be_hectic(value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        Params.model_validate({"price_refresh": value})

    assert caught.value.errors()[0]["loc"] == ("price_refresh",)


def test_launching_asks_nothing_more(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.controls.list_prices = {HERE: "0.85"}
    provider = aws.provider()
    (offer,) = provider.offers()
    for _ in range(3):
        launch(provider, make_spec(aws), offer=offer)

    assert aws.controls.count(ASK) == 1


# --- when it cannot be read -------------------------------------------------------------------


def forbid(aws: AwsCloud) -> None:
    aws.controls.allowed = {"ec2:DescribeInstances"}


def test_without_permission_the_pool_is_no_offer_and_says_what_to_do(
    aws: AwsCloud, clock: VirtualClock
) -> None:
    aws.pools = [BARE, POOL | {"infra": "aws/us-east-1/us-east-1b"}]
    forbid(aws)

    left_out, offer = aws.provider().pool_offers()

    assert usd(offer) == 1.006
    code, words = reason(left_out)
    assert code == "not_in_catalog"
    assert words.startswith(f"no price known: the catalog has no {TYPE} in us-east-1 of aws; AWS")
    assert "AccessDeniedException" in words
    assert words.endswith(
        "write usd_per_hour of the pool, or a price under prices.overrides, or allow "
        "pricing:GetProducts"
    )


def test_nothing_that_has_a_price_is_an_answer_too(aws: AwsCloud, clock: VirtualClock) -> None:
    forbid(aws)
    provider = aws.provider()

    assert provider.offers() == []
    assert provider.list_instances() == []


def test_without_permission_the_catalog_still_counts(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.catalog = shipped()
    forbid(aws)

    assert usd(aws.provider().pool_offers()[0]) == 1.006


def test_a_permission_that_is_missing_is_asked_for_once_an_hour(
    aws: AwsCloud, clock: VirtualClock
) -> None:
    aws.pools = [BARE, OTHER]
    aws.controls.list_prices = {HERE: "0.85", ("g5.2xlarge", "us-east-1"): "1.2"}
    forbid(aws)
    provider = aws.provider()
    for _ in range(3):
        for item in provider.pool_offers():
            assert "AccessDeniedException" in reason(item)[1]
    assert aws.controls.count(ASK) == 1, "one refusal speaks for all types"
    aws.controls.allowed = None
    clock.advance(FORBIDDEN_S - 1)
    provider.pool_offers()
    assert aws.controls.count(ASK) == 1

    clock.advance(1)

    assert [usd(item) for item in provider.pool_offers()] == [0.85, 1.2]


TROUBLE: dict[str, dict[str, Any]] = {
    "no answer": {"is_dropped": True},
    "a proxy's page": {"is_html": True},
    "throttled": {"code": "ThrottlingException"},
    "inside": {"code": "InternalErrorException", "http": 500},
}


@pytest.mark.parametrize("fault", TROUBLE.values(), ids=TROUBLE.keys())
def test_trouble_on_the_way_passes_after_five_minutes(
    aws: AwsCloud, clock: VirtualClock, fault: Mapping[str, Any]
) -> None:
    aws.pools = [BARE, OTHER]
    aws.controls.list_prices = {HERE: "0.85", ("g5.2xlarge", "us-east-1"): "1.2"}
    aws.controls.fail(ASK, **fault)
    provider = aws.provider()
    for item in provider.pool_offers():
        assert "AWS does not say one: pricing get_products in us-east-1" in reason(item)[1]
    clock.advance(AGAIN_S - 1)
    provider.pool_offers()
    assert aws.controls.count(ASK) == 1

    clock.advance(1)

    assert [usd(item) for item in provider.pool_offers()] == [0.85, 1.2]


def test_a_list_that_cannot_be_reached_is_tried_less_and_less_often(
    aws: AwsCloud, clock: VirtualClock
) -> None:
    """Such as from a private network: each try holds the tick for seconds."""
    aws.controls.fail(ASK, is_dropped=True, times=10_000)
    provider = aws.provider()
    for _ in range(24 * 60):
        provider.pool_offers()
        clock.advance(60)

    assert 20 < aws.controls.count(ASK) < 30


def test_slow_answers_are_waited_for_over_several_looks(
    aws: AwsCloud, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("g5.2xlarge", "g5.4xlarge", "g5.8xlarge")
    aws.pools = [BARE | {"instance_type": name, "cpus": 8} for name in names]
    aws.controls.list_prices = {(name, "us-east-1"): "1.0" for name in names}
    monkeypatch.setattr(aws.emulator, "watch", lambda: clock.advance(LOOK_S / 2))
    provider = aws.provider()

    first, second, third = provider.pool_offers()

    assert (usd(first), usd(second)) == (1.0, 1.0)
    assert "it is asked in the next minutes, since AWS answers slowly" in reason(third)[1]
    assert [usd(item) for item in provider.pool_offers()] == [1.0] * 3
    assert aws.controls.count(ASK) == 3


def test_a_type_that_is_not_listed_costs_its_own_pool_only(
    aws: AwsCloud, clock: VirtualClock
) -> None:
    aws.pools = [OTHER, BARE]
    aws.controls.list_prices = {HERE: "0.85"}

    left_out, offer = aws.provider().pool_offers()

    assert usd(offer) == 0.85
    words = reason(left_out)[1]
    assert "has no on-demand price of g5.2xlarge in us-east-1; check that" in words
    assert "allow" not in words, "it was allowed"


def test_the_last_price_stands_in_until_it_is_too_old(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.controls.list_prices = {HERE: "0.85"}
    provider = aws.provider()
    provider.pool_offers()
    aws.controls.fail(ASK, "InternalErrorException", http=500, times=10_000)
    clock.advance(30 * DAY_S)
    assert usd(provider.pool_offers()[0]) == 0.85

    clock.advance(DEFAULT_MAX_AGE_S)

    code, words = reason(provider.pool_offers()[0])
    assert code == "stale"
    assert "395 days ago" in words


@pytest.mark.parametrize(
    ("text", "code"),
    [("0.0000000000", "zero"), ("NaN", "not_a_number"), ("-1", "negative"), ("6.1 CNY", "no_rate")],
)
def test_a_price_that_cannot_be_one_is_none(
    aws: AwsCloud, clock: VirtualClock, text: str, code: str
) -> None:
    aws.controls.list_prices = {HERE: text}

    assert reason(aws.provider().pool_offers()[0])[0] == code


@pytest.mark.parametrize("content", [["{"], ["[]"], ['{"product": 1}'], [[1]], [""]], ids=str)
def test_an_answer_that_cannot_be_read_is_no_price(
    aws: AwsCloud, clock: VirtualClock, content: list[object]
) -> None:
    aws.catalog = shipped()
    aws.pools = [BARE, OTHER]
    aws.controls.price_list = content

    offer, left_out = aws.provider().pool_offers()

    assert usd(offer) == 1.006, "the catalog still counts"
    assert "AWS's price list cannot be read at" in reason(left_out)[1]
    assert aws.controls.count(ASK) == 2


def test_a_list_is_read_page_by_page(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.controls.list_prices = {HERE: "0.85"}
    aws.controls.page_count = 1

    assert usd(aws.provider().pool_offers()[0]) == 0.85
    assert aws.controls.count(ASK) == 2, "the capacity block stands on a page of its own"


def test_a_list_that_has_no_end_is_left(aws: AwsCloud, clock: VirtualClock) -> None:
    block = product("B", TYPE, "us-east-1", "0.0000000000", marketoption="CapacityBlock")
    aws.controls.price_list = [json.dumps(block)] * 2_000

    assert "has no on-demand price" in reason(aws.provider().pool_offers()[0])[1]
    assert aws.controls.count(ASK) == 5


# --- where the list is ------------------------------------------------------------------------


def test_a_region_in_china_is_priced_there_and_needs_a_rate(
    aws: AwsCloud, clock: VirtualClock
) -> None:
    aws.regions["cn-north-1"] = {"image": IMAGE}
    aws.pools = [BARE | {"infra": "aws/cn-north-1/cn-north-1a"}]
    aws.controls.list_prices = {(TYPE, "cn-north-1"): "7.1 CNY"}
    code, words = reason(aws.provider().pool_offers()[0])
    assert code == "no_rate"
    assert "write that rate under prices.rates" in words

    aws.rates = {"CNY": 7.1}

    assert usd(aws.provider().pool_offers()[0]) == pytest.approx(1.0)
    assert {call.region for call in aws.controls.calls} == {"cn-northwest-1"}


def test_where_aws_has_no_list_none_is_asked(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.regions["us-gov-west-1"] = {"image": IMAGE}
    aws.pools = [BARE | {"infra": "aws/us-gov-west-1/us-gov-west-1a"}]

    assert "AWS has no price list for us-gov-west-1" in reason(aws.provider().pool_offers()[0])[1]
    assert aws.controls.calls == []


# --- what else it is good for -----------------------------------------------------------------


def test_a_spot_price_above_what_aws_asks_on_demand_is_no_offer(
    aws: AwsCloud, clock: VirtualClock
) -> None:
    aws.pools = [BARE, BARE | {"use_spot": True}]
    aws.controls.list_prices = {HERE: "0.85"}
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.9}

    offer, left_out = aws.provider().pool_offers()

    assert usd(offer) == 0.85
    assert reason(left_out)[0] == "spot_above_on_demand"


def test_offline_the_catalog_alone_speaks(aws: AwsCloud, clock: VirtualClock) -> None:
    aws.pools = [BARE, OTHER]
    aws.catalog = shipped()
    aws.controls.list_prices = {HERE: "0.85"}

    offer, left_out = aws.provider().offline_offers()

    assert usd(offer) == 1.006
    code, words = reason(left_out)
    assert code == "not_in_catalog"
    assert "or let a running controller ask AWS, which takes pricing:GetProducts" in words
    assert aws.controls.calls == []
