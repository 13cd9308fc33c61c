"""Tests of looking up, judging and ranking prices, on rows made up for each test."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.core.catalog import (
    Catalog,
    CatalogRow,
    OwnPrice,
    Price,
    Terms,
    find,
    price,
    quotes,
    rank,
    with_own_prices,
)
from hybrid.core.models import Market
from hybrid.core.prices import DAY_S
from hybrid.core.quantity import GpuRequest
from tests.core.make import laws

TODAY = dt.date(2026, 11, 30)
NOW_S = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC).timestamp()
TERMS = Terms(now_s=NOW_S)
SPOT, ON_DEMAND = Market.SPOT, Market.ON_DEMAND


def make_row(
    on_demand: float | None = 10.0,
    spot: float | None = None,
    *,
    place: str = "gcp/us-central1",
    gpu: str = "A100-40GB",
    gpu_count: int = 8,
    instance_type: str = "a2-highgpu-8g",
    currency: str = "USD",
    as_of: dt.date | None = TODAY,
    zones: tuple[str, ...] = (),
    is_confirmed: bool = True,
) -> CatalogRow:
    provider, _, region = place.partition("/")
    return CatalogRow(
        provider=provider,
        region=region,
        zones=zones,
        instance_type=instance_type,
        gpu=gpu,
        gpu_count=gpu_count,
        currency=currency,
        on_demand_per_hour=on_demand,
        spot_per_hour=spot,
        is_confirmed=is_confirmed,
        source="made-up",
        as_of=as_of,
    )


def make_own(
    per_hour: float = 9.0,
    *,
    place: str = "gcp/us-central1",
    instance_type: str = "a2-highgpu-8g",
    market: Market = ON_DEMAND,
    currency: str = "USD",
) -> OwnPrice:
    provider, region, zone = (*place.split("/"), "", "")[:3]
    return OwnPrice(
        provider=provider,
        region=region,
        zone=zone,
        instance_type=instance_type,
        market=market,
        per_hour=per_hour,
        currency=currency,
        source="hybrid.yaml: clouds.any_of[0]",
    )


def code(judged: Price) -> str:
    return judged.reason.code if judged.reason else ""


# --- one price -----------------------------------------------------------------------------


def test_price_is_the_rows_price() -> None:
    row = make_row(10.0, 4.0)

    assert price(row, ON_DEMAND, TERMS) == Price(usd_per_hour=10.0)
    assert price(row, SPOT, TERMS) == Price(usd_per_hour=4.0)


@pytest.mark.parametrize(
    ("amount", "why"),
    [
        (None, "no_price"),
        (math.nan, "not_a_number"),
        (math.inf, "not_a_number"),
        (-math.inf, "not_a_number"),
        (0.0, "zero"),
        (-0.0, "zero"),
        (-1.5, "negative"),
    ],
)
@pytest.mark.parametrize("market", Market)
def test_price_is_never_guessed(amount: float | None, why: str, market: Market) -> None:
    judged = price(make_row(amount, amount), market, TERMS)

    assert code(judged) == why
    assert judged.usd_per_hour is None
    assert judged.reason
    assert market.value.replace("_", "-") in judged.reason.message
    assert "usd_per_hour of a pool" in judged.reason.message


@pytest.mark.parametrize(
    ("age_days", "max_age_days", "why"),
    [(0, 365, ""), (365, 365.5, ""), (365, 365, "stale"), (1, 0, "stale"), (-1, 365, "")],
)
def test_price_is_refused_when_it_is_too_old(age_days: int, max_age_days: float, why: str) -> None:
    row = make_row(as_of=TODAY - dt.timedelta(days=age_days))

    judged = price(row, ON_DEMAND, Terms(now_s=NOW_S, max_age_s=max_age_days * DAY_S))

    assert code(judged) == why


def test_price_says_how_old_it_is() -> None:
    judged = price(make_row(as_of=dt.date(2025, 3, 2)), ON_DEMAND, TERMS)

    assert judged.reason
    assert "from 2025-03-02, 638 days ago, and older than 365d" in judged.reason.message
    assert judged.reason.facts["as_of"] == "2025-03-02"
    assert judged.reason.facts["max_age_s"] == 365 * DAY_S


@pytest.mark.parametrize(
    ("as_of", "why"),
    [(None, "undated"), (TODAY + dt.timedelta(days=3), "future")],
    ids=["no-date", "yet-to-come"],
)
def test_price_without_a_possible_date_is_refused(as_of: dt.date | None, why: str) -> None:
    assert code(price(make_row(as_of=as_of), ON_DEMAND, TERMS)) == why


def test_price_in_another_currency_needs_a_rate() -> None:
    row = make_row(71.0, currency="CNY")

    refused = price(row, ON_DEMAND, TERMS)
    judged = price(row, ON_DEMAND, Terms(now_s=NOW_S, rates={"CNY": 7.1}))

    assert code(refused) == "no_rate"
    assert refused.reason
    assert "how many CNY a US dollar costs" in refused.reason.message
    assert judged.usd_per_hour == pytest.approx(10.0)


def test_price_with_the_rate_of_another_currency_is_refused() -> None:
    row = make_row(71.0, currency="CNY")

    assert code(price(row, ON_DEMAND, Terms(now_s=NOW_S, rates={"EUR": 0.9}))) == "no_rate"


def test_price_in_dollars_takes_no_rate() -> None:
    judged = price(make_row(10.0), ON_DEMAND, Terms(now_s=NOW_S, rates={"USD": 2.0}))

    assert judged.usd_per_hour == 10.0


@pytest.mark.parametrize("rate", [0.0, -7.1, math.nan, math.inf])
def test_terms_refuse_an_impossible_rate(rate: float) -> None:
    with pytest.raises(ValidationError):
        Terms(now_s=NOW_S, rates={"CNY": rate})


@pytest.mark.parametrize(
    ("full", "why"),
    [(10.0, "spot_above_on_demand"), (12.0, ""), (15.0, ""), (None, ""), (0.0, "")],
    ids=["above", "equal", "below", "full-price-unknown", "full-price-zero"],
)
def test_spot_price_above_on_demand_is_refused(full: float | None, why: str) -> None:
    assert code(price(make_row(full, 12.0), SPOT, TERMS)) == why


def test_price_of_an_unconfirmed_place_is_refused_only_where_one_chooses() -> None:
    row = make_row(is_confirmed=False)

    assert price(row, ON_DEMAND, TERMS).usd_per_hour == 10.0
    choosing = Terms(now_s=NOW_S, is_confirmed_only=True)
    assert code(price(row, ON_DEMAND, choosing)) == "unconfirmed"


@pytest.mark.parametrize(("amount", "rate"), [(1e308, 1e-3), (1e-308, 1e300)])
def test_price_beyond_all_sense_is_refused(amount: float, rate: float) -> None:
    row = make_row(amount, currency="CNY")

    judged = price(row, ON_DEMAND, Terms(now_s=NOW_S, rates={"CNY": rate}))

    assert code(judged) in {"not_a_number", "zero"}


@laws
@given(
    st.one_of(st.none(), st.floats()),
    st.one_of(st.none(), st.floats()),
    st.sampled_from(["USD", "CNY"]),
    st.one_of(st.none(), st.dates()),
    st.sampled_from(list(Market)),
)
def test_price_is_positive_or_has_a_reason(
    full: float | None, spot: float | None, currency: str, as_of: dt.date | None, market: Market
) -> None:
    row = make_row(full, spot, currency=currency, as_of=as_of)

    judged = price(row, market, Terms(now_s=NOW_S, rates={"CNY": 7.1}))

    assert (judged.usd_per_hour is None) == (judged.reason is not None)
    assert judged.usd_per_hour is None or 0 < judged.usd_per_hour < math.inf


# --- finding -------------------------------------------------------------------------------

ROWS = (
    make_row(gpu="A100-40GB", gpu_count=8, instance_type="a2-highgpu-8g"),
    make_row(gpu="A100-80GB", gpu_count=4, instance_type="a2-ultragpu-4g", place="gcp/us-east5"),
    make_row(gpu="L4", gpu_count=1, instance_type="g2", zones=("us-central1-a",)),
    make_row(gpu="T4", gpu_count=4, instance_type="g4dn.12xlarge", place="aws/us-east-1"),
)


def types(rows: Sequence[CatalogRow]) -> list[str]:
    return [row.instance_type for row in rows]


def test_find_without_wishes_returns_every_row() -> None:
    assert find(ROWS) == ROWS


@pytest.mark.parametrize(
    ("gpus", "found"),
    [
        (GpuRequest("a100", 4), ["a2-highgpu-8g", "a2-ultragpu-4g"]),
        (GpuRequest("A100", 8), ["a2-highgpu-8g"]),
        (GpuRequest("A100-80GB", 1), ["a2-ultragpu-4g"]),
        (GpuRequest("A100", 16), []),
        (GpuRequest("", 4), ["a2-highgpu-8g", "a2-ultragpu-4g", "g4dn.12xlarge"]),
    ],
    ids=str,
)
def test_find_returns_machines_with_at_least_so_many_gpus(
    gpus: GpuRequest, found: list[str]
) -> None:
    assert types(find(ROWS, gpus=gpus)) == found


@pytest.mark.parametrize(
    ("infra", "found"),
    [
        (["aws"], ["g4dn.12xlarge"]),
        (["gcp/us-east5"], ["a2-ultragpu-4g"]),
        (["aws/us-east-1", "gcp/us-east5"], ["a2-ultragpu-4g", "g4dn.12xlarge"]),
        (["gcp/us-central1/us-central1-a"], ["a2-highgpu-8g", "g2"]),
        (["gcp/us-central1/us-central1-b"], ["a2-highgpu-8g"]),
    ],
    ids=str,
)
def test_find_returns_what_is_there(infra: list[str], found: list[str]) -> None:
    assert types(find(ROWS, infra=infra)) == found


def test_find_names_the_gpu_that_was_probably_meant() -> None:
    with pytest.raises(ValueError, match="'A1000' is no GPU of the catalog; did you mean A100"):
        find(ROWS, gpus=GpuRequest("A1000", 1))


def test_find_finds_a_gpu_that_is_elsewhere_only_without_a_complaint() -> None:
    assert find(ROWS, gpus=GpuRequest("T4", 1), infra=["gcp"]) == ()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("awss", "did you mean aws?"),
        ("azure", "it has aws, gcp"),
        ("gcp/us-centrall", "did you mean gcp/us-central1?"),
        ("gcp/mars", "it has gcp/us-central1, gcp/us-east5"),
    ],
)
def test_find_names_the_place_that_was_probably_meant(place: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"nothing at '{place}'; {words}")):
        find(ROWS, infra=[place])


def test_find_names_the_zones_of_a_region() -> None:
    with pytest.raises(ValueError, match="of gcp/us-central1 it has us-central1-a"):
        find(ROWS[2:3], infra=["gcp/us-central1/us-central1-z"])


def test_find_in_an_empty_catalog_says_so() -> None:
    with pytest.raises(ValueError, match="it has no rows"):
        find((), infra=["aws"])


# --- quotes and their order ----------------------------------------------------------------


def bought(rows: Sequence[CatalogRow], market: Market | None) -> list[tuple[str, str]]:
    return [(q.row.instance_type, q.market.value) for q in quotes(rows, TERMS, market=market)]


def test_quotes_are_of_each_market_with_a_price() -> None:
    rows = (make_row(10.0, 4.0, instance_type="both"), make_row(10.0, instance_type="one"))

    assert bought(rows, None) == [("both", "on_demand"), ("both", "spot"), ("one", "on_demand")]


def test_quotes_of_a_row_without_any_price_are_one_refusal() -> None:
    (quote,) = quotes((make_row(None),), TERMS)

    assert code(quote.price) == "no_price"


def test_quotes_of_a_market_asked_for_say_where_there_is_no_price() -> None:
    rows = (make_row(10.0, 4.0), make_row(10.0))

    assert [code(quote.price) for quote in quotes(rows, TERMS, market=SPOT)] == ["", "no_price"]


def test_quotes_of_an_own_price_are_of_its_market_only() -> None:
    rows = with_own_prices((), [make_own(market=ON_DEMAND)])

    assert bought(rows, SPOT) == []
    assert bought(rows, ON_DEMAND) == [("a2-highgpu-8g", "on_demand")]


def test_rank_puts_the_cheapest_first_and_refusals_last() -> None:
    rows = (
        make_row(None, instance_type="unknown"),
        make_row(12.0, instance_type="dear"),
        make_row(9.0, 3.0, instance_type="cheap"),
    )

    ranked = rank(quotes(rows, TERMS))

    assert [(q.row.instance_type, q.market.value) for q in ranked] == [
        ("cheap", "spot"),
        ("cheap", "on_demand"),
        ("dear", "on_demand"),
        ("unknown", "on_demand"),
    ]


def test_rank_by_gpu_prefers_a_larger_machine_with_cheaper_gpus() -> None:
    rows = (
        make_row(2.0, gpu_count=1, instance_type="small"),
        make_row(8.0, gpu_count=8, instance_type="large"),
        make_row(1.0, gpu_count=0, gpu="", instance_type="none"),
    )

    assert [q.row.instance_type for q in rank(quotes(rows, TERMS), by="gpu")] == [
        "large",
        "small",
        "none",
    ]
    assert [q.usd_per_gpu_hour for q in rank(quotes(rows, TERMS), by="gpu")] == [1.0, 2.0, None]


@laws
@given(st.permutations([make_row(3.0), make_row(3.0, place="aws/us-east-1"), make_row(None)]))
def test_rank_does_not_depend_on_the_order_of_rows(rows: list[CatalogRow]) -> None:
    assert rank(quotes(rows, TERMS)) == rank(quotes(sorted(rows, key=str), TERMS))


# --- prices of one's own -------------------------------------------------------------------


def test_own_price_of_a_region_replaces_the_catalogs() -> None:
    rows = with_own_prices((make_row(10.0, 4.0),), [make_own(9.0)])

    ranked = rank(quotes(rows, TERMS))

    assert [(q.price.usd_per_hour, q.market, q.row.is_own) for q in ranked] == [
        (4.0, SPOT, False),
        (9.0, ON_DEMAND, True),
    ]


def test_own_price_keeps_what_the_catalog_knows_of_the_machine() -> None:
    (row,) = with_own_prices((make_row(10.0),), [make_own(9.0)])

    assert (row.gpu, row.gpu_count, row.source) == (
        "A100-40GB",
        8,
        "hybrid.yaml: clouds.any_of[0]",
    )


def test_own_price_of_a_zone_stands_beside_its_regions() -> None:
    rows = with_own_prices(
        (make_row(10.0),), [make_own(9.0, place="gcp/us-central1/us-central1-a")]
    )

    assert [row.on_demand_per_hour for row in rows] == [9.0, 10.0]
    assert rows[0].zones == ("us-central1-a",)


def test_own_price_in_a_new_region_takes_the_machine_from_another() -> None:
    rows = with_own_prices((make_row(10.0),), [make_own(9.0, place="gcp/mars-1")])

    assert [(row.region, row.gpu_count) for row in rows] == [("mars-1", 8), ("us-central1", 8)]


def test_own_price_never_grows_old_and_is_always_confirmed() -> None:
    stale = make_row(10.0, as_of=dt.date(2020, 1, 1), is_confirmed=False)

    (row,) = with_own_prices((stale,), [make_own(9.0)])

    choosing = Terms(now_s=NOW_S, is_confirmed_only=True)
    assert price(row, ON_DEMAND, choosing).usd_per_hour == 9.0


def test_own_price_in_cny_needs_a_rate_too() -> None:
    (row,) = with_own_prices((), [make_own(71.0, currency="CNY")])

    assert code(price(row, ON_DEMAND, TERMS)) == "no_rate"
    assert price(row, ON_DEMAND, Terms(now_s=NOW_S, rates={"CNY": 7.1})).usd_per_hour


def test_own_price_makes_rows_without_one_superfluous() -> None:
    known = make_row(None, place="baidu", instance_type="bcc.x")

    rows = with_own_prices((known,), [make_own(9.0, place="baidu/bj", instance_type="bcc.x")])

    assert [row.region for row in rows] == ["bj"]
    assert rows[0].gpu_count == 8


@pytest.mark.parametrize("per_hour", [math.nan, 0.0, -1.0])
def test_own_price_is_judged_as_any_other(per_hour: float) -> None:
    (row,) = with_own_prices((), [make_own(per_hour)])

    assert price(row, ON_DEMAND, TERMS).usd_per_hour is None


def test_own_spot_and_on_demand_prices_of_one_place_both_count() -> None:
    own = [make_own(9.0), make_own(3.0, market=SPOT)]

    rows = with_own_prices((make_row(10.0, 4.0),), own)

    assert [q.price.usd_per_hour for q in rank(quotes(rows, TERMS))] == [3.0, 9.0]


# --- for providers -------------------------------------------------------------------------


def test_catalog_prices_one_type_in_one_region() -> None:
    catalog = Catalog(rows=(make_row(10.0, 4.0),))

    judged = catalog.price("gcp", "us-central1", "a2-highgpu-8g", SPOT, TERMS)

    assert judged.usd_per_hour == 4.0


@pytest.mark.parametrize(
    ("provider", "region", "instance_type"),
    [("aws", "us-central1", "a2-highgpu-8g"), ("gcp", "mars", "a2-highgpu-8g"), ("gcp", "", "x")],
)
def test_catalog_says_what_it_does_not_have(provider: str, region: str, instance_type: str) -> None:
    catalog = Catalog(rows=(make_row(10.0),))

    judged = catalog.price(provider, region, instance_type, ON_DEMAND, TERMS)

    assert code(judged) == "not_in_catalog"
    assert judged.reason
    assert instance_type in judged.reason.message


def test_catalog_knows_what_is_inside_a_type_in_any_region() -> None:
    catalog = Catalog(rows=(make_row(),))

    inside = catalog.inside("gcp", "a2-highgpu-8g")

    assert inside
    assert (inside.gpu, inside.gpu_count) == ("A100-40GB", 8)
    assert catalog.inside("aws", "a2-highgpu-8g") is None


def test_an_empty_catalog_answers_too() -> None:
    assert Catalog().inside("aws", "g5.xlarge") is None
    judged = Catalog().price("aws", "us-east-1", "g5.xlarge", SPOT, TERMS)
    assert code(judged) == "not_in_catalog"
