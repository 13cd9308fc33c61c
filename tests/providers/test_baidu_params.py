"""The settings of Baidu AI Cloud, and what they offer."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from hybrid.core.models import Offer
from hybrid.core.ports import ProviderContext
from providers.baidu import make
from providers.baidu.offers import bid_cny_per_minute
from providers.baidu.params import Exchange, Params
from providers.baidu.spec import Inside, inside
from tests.providers.baidu_cloud import ACCOUNT, POOL
from tests.world.clock import VirtualClock


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bcc.hgn5IB.c116m978.8A100-80g", Inside(116, 978, 8, "A100-80GB")),
        ("bcc.lgn1.c12m40.1p40", Inside(12, 40, 1, "P40")),
        ("bcc.lgn1.c12m40.1p4", Inside(12, 40, 1, "P4")),
        ("ehc.lgn5.c128m1024.8a100.8re.4d", Inside(128, 1024, 8, "A100")),
        ("bcc.g5.c2m8", Inside(2, 8)),
        ("bcc.l5d.c4m16.2d", Inside(4, 16)),
        ("bcc.g1.tiny", Inside()),
    ],
)
def test_a_name_says_what_is_inside(name: str, content: Inside) -> None:
    assert inside(name) == content


def params(pool: dict[str, Any] | None = None, **account: Any) -> Params:
    return Params.model_validate(ACCOUNT | {"pools": [POOL | (pool or {})]} | account)


def offer(pool: dict[str, Any] | None = None, **account: Any) -> Offer:
    raw = ACCOUNT | {"pools": [POOL | (pool or {})]} | account
    (made,) = make("baidu", raw, context()).offers()
    return made


def context() -> ProviderContext:
    return ProviderContext(
        cluster_id="c", cluster_name="c", state_dir="", ray_dir="", clock=VirtualClock()
    )


@pytest.mark.parametrize(
    ("pool", "account", "words"),
    [
        ({"infra": "baidu"}, {}, "write baidu/REGION"),
        ({"infra": "baidu/bj/a/b"}, {}, "write baidu/REGION"),
        ({"infra": "baidu/mars"}, {}, "there is no region 'mars'; known are bd, bj"),
        ({"instance_type": "A100"}, {}, "is not an instance type"),
        ({"instance_type": "bcc.x.c1m1;reboot"}, {}, "is not an instance type"),
        ({"usd_per_hour": 1}, {}, "the price is given twice"),
        ({"cny_per_hour": float("nan")}, {}, "cny_per_hour"),
        ({"cny_per_hour": 0}, {}, "greater than 0"),
        ({}, {"exchange": None}, "its price is in CNY; write providers.baidu.exchange"),
        (
            {"cny_per_hour": None, "usd_per_hour": 1, "use_spot": True},
            {"exchange": None},
            "a spot instance is bid for in CNY",
        ),
        ({}, {"exchange": {"cny_per_usd": 7.1}}, "as_of"),
        ({}, {"exchange": {"cny_per_usd": 7.1, "as_of": "2026-11-27"}}, "source"),
        ({}, {"exchange": {"cny_per_usd": 0.14, "as_of": "2026-11-27", "source": "x"}}, "greater"),
        ({"accelerators": "P40:2"}, {}, "has P40:1; leave it out"),
        ({"accelerators": "A100:1"}, {}, "has P40:1; leave it out"),
        ({"instance_type": "bcc.g5.c2m8", "accelerators": "P40:1"}, {}, "has no GPU"),
        ({"accelerators": "P40x1"}, {}, "write TYPE:COUNT"),
        ({"cpus": 13}, {}, "cpus is more than"),
        ({"memory": "41GiB"}, {}, "memory is more than"),
        ({"instance_type": "bcc.g1.tiny"}, {}, "add cpus"),
        ({"instance_type": "bcc.g1.tiny", "cpus": 1}, {}, "add memory"),
        ({"labels": {"zone": "x"}}, {}, "label zone is set by this program"),
        ({"stock": 2}, {}, "stock"),
        ({}, {"image": None}, "it has no image"),
        ({}, {"image": "m 1"}, "image"),
        ({}, {"subnets": {"cn-bj-d": "sbn-1"}}, "go together"),
        ({}, {"security_groups": ["g-1"]}, "go together"),
        ({}, {"root_disk_gb": 20}, "root_disk_gb"),
        ({}, {"endpoints": {"bj": "bcc.bj.baidubce.com"}}, "write https://HOST"),
        ({}, {"endpoints": {"bj": "http://bcc.bj.baidubce.com"}}, "write https://HOST"),
        ({}, {"endpoints": {"bj": "https://user:pw@host"}}, "write https://HOST"),
        ({}, {"endpoints": {"bj": "https://host/v2"}}, "write https://HOST"),
        ({}, {"errors": {"": "capacity"}}, "at least 3 characters"),
        ({}, {"errors": {"SoldOut": "sold_out"}}, "errors"),
        ({}, {"python": "python; reboot"}, "python"),
        ({}, {"pools": [POOL, POOL]}, "is listed twice"),
        ({}, {"secret": "s"}, "secret"),
    ],
)
def test_a_wrong_setting_is_refused_with_words(
    pool: dict[str, Any], account: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        params(pool, **account)


@pytest.mark.parametrize(
    "url",
    [
        "https://bcc.cd.example.com",
        "https://10.0.0.1:8443/",
        "http://127.0.0.1:1",
        "http://[::1]:1",
    ],
)
def test_an_endpoint_may_be_ones_own_and_makes_a_region_known(url: str) -> None:
    made = params({"infra": "baidu/cd"}, endpoints={"cd": url})

    assert made.endpoint("cd") == url.rstrip("/")


def test_without_endpoints_every_call_is_encrypted() -> None:
    assert params().endpoint("bj") == "https://bcc.bj.baidubce.com"


def test_a_pool_may_have_an_image_and_a_subnet_of_its_own() -> None:
    made = params(
        {"image": "m-2", "subnet": "sbn-2"}, security_groups=["g-1"], subnets={"bj": "sbn-1"}
    )

    assert made.image_of(made.pools[0]) == "m-2"
    assert made.subnet_of(made.pools[0]) == "sbn-2"


@pytest.mark.parametrize(
    ("subnets", "chosen"),
    [({"bj": "sbn-1"}, "sbn-1"), ({"bj": "sbn-1", "cn-bj-d": "sbn-d"}, "sbn-d")],
)
def test_the_subnet_of_the_zone_comes_before_that_of_the_region(
    subnets: dict[str, str], chosen: str
) -> None:
    made = params(security_groups=["g-1"], subnets=subnets)

    assert made.subnet_of(made.pools[0]) == chosen


def test_an_offer_has_what_the_name_and_the_pool_say() -> None:
    made = offer({"instance_type": "bcc.hgn5IB.c116m978.8A100-80g", "max_nodes": 2, "rank": 3})

    assert made.offer_id == "baidu/bj/cn-bj-d/bcc.hgn5IB.c116m978.8A100-80g/on_demand"
    assert (made.region, made.zone) == ("bj", "cn-bj-d")
    assert (made.accelerator, made.gpu_count) == ("A100", 8)
    assert made.shape["CPU"] == 116
    assert made.shape["GPU"] == 8
    assert made.shape["accelerator_type:A100"] == 1
    assert 500 * 2**30 < made.shape["memory"] < 978 * 2**30
    assert (made.max_count, made.rank, made.stock_count) == (2, 3, None)


def test_a_pool_may_say_less_than_the_name() -> None:
    made = offer({"accelerators": "GPU:1", "cpus": 8, "memory": "32GiB"})

    assert made.shape == {"CPU": 8, "memory": 32 * 2**30, "GPU": 1}


def test_a_type_whose_name_says_nothing_is_described_by_the_pool() -> None:
    made = offer({"instance_type": "bcc.g1.tiny", "cpus": 1, "memory": "1GiB"})

    assert made.shape == {"CPU": 1, "memory": 2**30}
    assert (made.accelerator, made.gpu_count) == ("", 0)


def test_a_price_in_cny_becomes_dollars_at_the_stated_rate() -> None:
    rate = {"cny_per_usd": 7.25, "as_of": "2026-11-27", "source": "PBOC"}

    assert offer({"cny_per_hour": 29}, exchange=rate).usd_per_hour == pytest.approx(4.0)


def test_a_price_in_dollars_needs_no_rate() -> None:
    made = offer({"cny_per_hour": None, "usd_per_hour": 4}, exchange=None)

    assert made.usd_per_hour == 4


@pytest.mark.parametrize(
    ("price", "bid"),
    [
        ({"cny_per_hour": 3.3}, "0.0550"),
        ({"cny_per_hour": 3.299}, "0.0549"),
        ({"cny_per_hour": 60}, "1.0000"),
        ({"cny_per_hour": None, "usd_per_hour": 1}, "0.1200"),
    ],
)
def test_a_bid_is_cny_per_minute_and_never_above_the_price(price: dict[str, Any], bid: str) -> None:
    made = params({"use_spot": True} | price)
    assert isinstance(made.exchange, Exchange)

    usd = offer({"use_spot": True} | price).usd_per_hour
    assert bid_cny_per_minute(made.pools[0], made.exchange, usd_per_hour=usd) == bid
    assert float(bid) * 60 / made.exchange.cny_per_usd <= usd + 1e-9
