"""A pool whose price nobody knows is no offer and says why; the configuration stays good.

The same for all clouds, and nothing here calls any of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from hybrid.core.catalog import Catalog, CatalogRow
from hybrid.core.models import Offer
from hybrid.core.models.withheld import Offered, Withheld
from hybrid.core.ports import MakeProvider, Provider, ProviderContext
from hybrid.core.ports.pools import CandidProvider, OfflineProvider
from providers import aws, baidu, gcp
from tests.providers import baidu_cloud, gcp_cloud
from tests.world.clock import VirtualClock

NOW = dt.date(2026, 12, 1)
NOW_S = dt.datetime(2026, 12, 1, tzinfo=dt.UTC).timestamp()
PRICES = ("usd_per_hour", "cny_per_hour")


@dataclass(frozen=True)
class Cloud:
    """How a cloud is made from a configuration.

    Attributes:
        pool: Without a price.
    """

    name: str
    make: MakeProvider
    account: dict[str, Any]
    pool: dict[str, Any]

    @property
    def row(self) -> CatalogRow:
        """What the catalog may say of the pool's type."""
        return CatalogRow(
            provider=self.name,
            region=self.pool["infra"].split("/")[1],
            instance_type=self.pool["instance_type"],
            gpu=self.pool.get("accelerators", "").partition(":")[0],
            gpu_count=1,
            on_demand_per_hour=2.0,
            source="s",
            as_of=NOW,
        )

    def provider(
        self,
        *rows: CatalogRow,
        pools: Sequence[dict[str, Any]] = (),
        clock: VirtualClock | None = None,
        **rates: float,
    ) -> Provider:
        context = ProviderContext(
            cluster_id="c",
            cluster_name="c",
            state_dir="",
            ray_dir="",
            clock=clock or VirtualClock(now_s=NOW_S),
            catalog=Catalog(rows=rows),
            rates=rates,
        )
        return self.make(self.name, self.account | {"pools": pools or [self.pool]}, context)


CLOUDS = (
    Cloud(
        "aws",
        aws.make,
        {
            "regions": {"us-east-1": {"image": "ami-0123456789abcdef0"}},
            "price_refresh": "off",  # no call is made here
        },
        {
            "infra": "aws/us-east-1/us-east-1a",
            "instance_type": "p9.huge",
            "accelerators": "A10G:1",
            "cpus": 4,
            "memory": "8GiB",
        },
    ),
    Cloud(
        "gcp",
        gcp.make,
        gcp_cloud.SETTINGS,
        {key: value for key, value in gcp_cloud.POOL.items() if key not in PRICES},
    ),
    Cloud(
        "baidu",
        baidu.make,
        {"image": "m-gpu1"},
        {key: value for key, value in baidu_cloud.POOL.items() if key not in PRICES},
    ),
)
WAYS = ("running", "offline")


@pytest.fixture(params=CLOUDS, ids=lambda cloud: str(cloud.name))
def cloud(request: pytest.FixtureRequest) -> Cloud:
    found: Cloud = request.param
    return found


def said(provider: Provider, way: str) -> Sequence[Offered]:
    assert isinstance(provider, CandidProvider)
    assert isinstance(provider, OfflineProvider)
    return provider.pool_offers() if way == "running" else provider.offline_offers()


def withheld(provider: Provider, way: str) -> Withheld:
    (found,) = said(provider, way)
    assert isinstance(found, Withheld), found
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"on_demand_per_hour": None}, "no_price"),
        ({"on_demand_per_hour": 0.0}, "zero"),
        ({"on_demand_per_hour": float("nan")}, "not_a_number"),
        ({"on_demand_per_hour": float("inf")}, "not_a_number"),
        ({"on_demand_per_hour": -1.0}, "negative"),
        ({"as_of": dt.date(2025, 3, 2)}, "stale"),
        ({"as_of": None}, "undated"),
        ({"as_of": dt.date(2027, 3, 2)}, "future"),
        ({"currency": "CNY"}, "no_rate"),
        ({"region": "elsewhere"}, "not_in_catalog"),
    ],
    ids=str,
)
def test_a_list_price_that_cannot_be_used_costs_the_pool_its_offer(
    cloud: Cloud, changes: dict[str, Any], code: str, way: str
) -> None:
    row = cloud.row.model_copy(update=changes)

    found = withheld(cloud.provider(row), way)

    assert found.reason.code == code
    assert found.reason.message.startswith("no price known: ")
    assert (
        "write usd_per_hour of the pool, or a price under prices.overrides" in found.reason.message
    )
    assert (found.provider, found.instance_type) == (cloud.name, cloud.pool["instance_type"])
    assert found.gpu_count == 1


@pytest.mark.parametrize("way", WAYS)
def test_no_catalog_at_all_is_a_reason_too(cloud: Cloud, way: str) -> None:
    assert withheld(cloud.provider(), way).reason.code == "not_in_catalog"


@pytest.mark.parametrize("way", WAYS)
def test_every_other_pool_goes_on(cloud: Cloud, way: str) -> None:
    other = cloud.pool | {"usd_per_hour": 3.0}
    other["instance_type"] = {"baidu": "bcc.lgn1.c24m80.2p40", "aws": "p9.small"}.get(
        cloud.name, "g2-standard-4"
    )
    other.pop("accelerators", None)
    provider = cloud.provider(pools=[cloud.pool, other | {"accelerators": "GPU:2"}])

    left_out, offer = said(provider, way)

    assert isinstance(left_out, Withheld)
    assert isinstance(offer, Offer)
    assert [offer.usd_per_hour for offer in provider.offers()] == [3.0]


@pytest.mark.parametrize("way", WAYS)
def test_a_list_price_that_can_be_used_makes_an_offer(cloud: Cloud, way: str) -> None:
    (offer,) = said(cloud.provider(cloud.row), way)

    assert isinstance(offer, Offer)
    assert offer.usd_per_hour == 2.0
    assert offer.offer_id == withheld(cloud.provider(), way).offer_id


@pytest.mark.parametrize("way", WAYS)
def test_a_rate_of_the_configuration_makes_another_currency_a_price(cloud: Cloud, way: str) -> None:
    row = cloud.row.model_copy(update={"currency": "CNY"})

    (offer,) = said(cloud.provider(row, CNY=8.0), way)

    assert isinstance(offer, Offer)
    assert offer.usd_per_hour == 0.25


def test_a_price_grows_too_old_while_the_controller_runs(cloud: Cloud) -> None:
    clock = VirtualClock(now_s=NOW_S)
    provider = cloud.provider(cloud.row, clock=clock)
    assert len(provider.offers()) == 1

    clock.advance(366 * 86_400)

    assert provider.offers() == []
    assert withheld(provider, "running").reason.code == "stale"
