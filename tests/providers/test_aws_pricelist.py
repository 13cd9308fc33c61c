"""What is made of an answer of AWS's price list; nothing here calls anything."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from hybrid.core.catalog import CatalogRow, Terms, price
from hybrid.core.models import Market
from providers.aws import pricelist
from tests.emulators.aws.pricing import product

TYPE, REGION = "p5.48xlarge", "eu-west-1"
NOW_S = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC).timestamp()


def listed(amount: str = "55.0400000000", sku: str = "S", **more: str) -> dict[str, Any]:
    return product(sku, TYPE, REGION, amount, **more)


def term_of(item: dict[str, Any]) -> dict[str, Any]:
    (term,) = item["terms"]["OnDemand"].values()
    return dict(term)


def dimension_of(item: dict[str, Any]) -> dict[str, Any]:
    (dimension,) = term_of(item)["priceDimensions"].values()
    found: dict[str, Any] = dimension
    return found


def read(*items: object) -> CatalogRow:
    answers = [json.dumps(item) if isinstance(item, dict) else item for item in items]
    return pricelist.read(answers, region=REGION, instance_type=TYPE, now_s=NOW_S)


def why_not(row: CatalogRow) -> str:
    judged = price(row, Market.ON_DEMAND, Terms(now_s=NOW_S))
    assert judged.reason is not None
    return judged.reason.code


def test_a_price_comes_with_the_day_it_was_read_on() -> None:
    row = read(listed())

    assert (row.on_demand_per_hour, row.currency) == (55.04, "USD")
    assert (row.region, row.instance_type, row.source) == (REGION, TYPE, pricelist.SOURCE)
    assert row.as_of == dt.date(2026, 12, 1)


def test_a_product_that_came_as_data_is_read_too() -> None:
    """Some SDKs take the text apart."""
    row = pricelist.read([listed()], region=REGION, instance_type=TYPE, now_s=NOW_S)

    assert row.on_demand_per_hour == 55.04


@pytest.mark.parametrize(
    ("amount", "code"),
    [
        ("0.0000000000", "zero"),
        ("NaN", "not_a_number"),
        ("1e999", "not_a_number"),
        ("-1", "negative"),
    ],
)
def test_an_impossible_amount_is_judged_like_any_other(amount: str, code: str) -> None:
    assert why_not(read(listed(amount))) == code


def test_another_currency_needs_a_rate() -> None:
    row = read(listed("300.5", currency="CNY"))

    assert why_not(row) == "no_rate"
    terms = Terms(now_s=NOW_S, rates={"CNY": 7.0})
    assert price(row, Market.ON_DEMAND, terms).usd_per_hour == pytest.approx(300.5 / 7)


def test_dollars_are_taken_where_there_are_two_currencies() -> None:
    item = listed()
    dimension_of(item)["pricePerUnit"]["CNY"] = "390.0"

    assert (read(item).currency, read(item).on_demand_per_hour) == ("USD", 55.04)


def test_what_was_not_asked_for_is_passed_over() -> None:
    others = [
        listed("1", operatingSystem="Windows"),
        listed("2", tenancy="Dedicated"),
        listed("3", regionCode="eu-west-2"),
        listed("4", instanceType="p5.4xlarge"),
        listed("5", capacitystatus="UnusedCapacityReservation"),
        listed("0", marketoption="CapacityBlock"),
    ]

    assert read(*others, listed()).on_demand_per_hour == 55.04


def test_a_product_that_does_not_name_its_market_counts() -> None:
    """Lists before capacity blocks did not."""
    item = listed()
    del item["product"]["attributes"]["marketoption"]

    assert read(item).on_demand_per_hour == 55.04


def test_the_same_price_twice_is_one() -> None:
    assert read(listed(), listed("55.04", sku="T")).on_demand_per_hour == 55.04


@pytest.mark.parametrize("other", ["55.05", "0.0000000000"])
def test_two_prices_are_none(other: str) -> None:
    with pytest.raises(ValueError, match=r"more than one price of p5\.48xlarge in eu-west-1 \("):
        read(listed(), listed(other, sku="T"))


def test_an_answer_without_products_is_no_price() -> None:
    with pytest.raises(ValueError, match=r"has no on-demand price of p5\.48xlarge in eu-west-1"):
        read()


def test_reserved_terms_are_no_price() -> None:
    item = listed()
    item["terms"] = {"Reserved": item["terms"]["OnDemand"]}

    with pytest.raises(ValueError, match="no on-demand price"):
        read(item)


def test_dimensions_in_other_units_are_other_things() -> None:
    item = listed()
    upfront = {"unit": "Quantity", "pricePerUnit": {"USD": "10000"}}
    term_of(item)["priceDimensions"]["upfront"] = upfront

    assert read(item).on_demand_per_hour == 55.04


def test_a_price_by_steps_is_none() -> None:
    item = listed()
    step = {**dimension_of(item), "beginRange": "100", "pricePerUnit": {"USD": "40.0"}}
    term_of(item)["priceDimensions"]["step"] = step

    with pytest.raises(ValueError, match="more than one price"):
        read(item)


def test_the_newest_term_in_force_counts() -> None:
    item = listed()
    term = term_of(item)
    for number, (since, amount) in enumerate(
        [("2025-06-01T00:00:00Z", "44.0"), ("2027-01-01T00:00:00Z", "33.0")]
    ):
        dimension = {**dimension_of(listed()), "pricePerUnit": {"USD": amount}}
        item["terms"]["OnDemand"][f"T{number}"] = {
            **term,
            "effectiveDate": since,
            "priceDimensions": {"d": dimension},
        }

    assert read(item).on_demand_per_hour == 44.0


@pytest.mark.parametrize(
    "answer",
    [
        "{",
        "",
        "[]",
        "null",
        "7",
        7,
        None,
        '{"product": null, "terms": {}}',
        '{"product": {"attributes": []}}',
        "[" * 50_000,
        '{"a": ' * 50_000,
    ],
    ids=lambda answer: f"{type(answer).__name__}-{str(answer)[:20]}",
)
def test_a_malformed_answer_is_no_price(answer: object) -> None:
    with pytest.raises(ValueError, match="AWS's price list cannot be read at"):
        read(answer)


def _broken(**changes: object) -> dict[str, Any]:
    item = listed()
    dimension_of(item).update(changes)
    return item


def _undated(since: object) -> dict[str, Any]:
    item = listed()
    (term,) = item["terms"]["OnDemand"].values()
    term["effectiveDate"] = since
    return item


@pytest.mark.parametrize(
    "item",
    [
        listed("a lot"),
        listed(currency="dollars"),
        _broken(pricePerUnit=None),
        _broken(pricePerUnit={"USD": None}),
        _broken(pricePerUnit={"USD": [1]}),
        _undated("soon"),
        _undated(None),
        listed() | {"terms": {"OnDemand": []}},
        listed() | {"terms": {"OnDemand": {"x": None}}},
        {key: value for key, value in listed().items() if key != "terms"},
    ],
)
def test_a_product_with_a_part_that_cannot_be_read_is_no_price(item: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="AWS's price list cannot be read at"):
        read(item)


@pytest.mark.parametrize(
    ("region", "home"),
    [
        ("us-east-1", "us-east-1"),
        ("sa-east-1", "us-east-1"),
        ("ca-west-1", "us-east-1"),
        ("eu-west-1", "eu-central-1"),
        ("me-south-1", "eu-central-1"),
        ("ap-northeast-1", "ap-south-1"),
        ("cn-north-1", "cn-northwest-1"),
        ("us-gov-west-1", ""),
        ("us-iso-east-1", ""),
    ],
)
def test_the_nearest_list_is_asked(region: str, home: str) -> None:
    assert pricelist.home(region) == home


def test_each_list_is_one_that_the_sdk_knows() -> None:
    import boto3

    session = boto3.Session()
    for partition in ("aws", "aws-cn"):
        known = session.get_available_regions("pricing", partition)
        regions = session.get_available_regions("ec2", partition)
        assert {pricelist.home(region) for region in regions} == set(known)
