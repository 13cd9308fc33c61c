"""One answer of AWS's price list, read with suspicion; pure.

https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/price-list-query-api-get-products.html
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from hybrid.core.catalog import USD, CatalogRow
from hybrid.core.quantity import shown

SERVICE = "AmazonEC2"
SOURCE = "aws-price-list"

_HOMES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("cn-",), "cn-northwest-1"),
    (("us-gov-", "us-iso", "eu-iso", "eusc-"), ""),
    (("ap-",), "ap-south-1"),
    (("eu-", "il-", "me-", "af-"), "eu-central-1"),
)
_CURRENCY = re.compile(r"[A-Z]{3}")
_HOURS = "Hrs"


class Amount(NamedTuple):
    """A price as it stands."""

    per_hour: float
    currency: str


def home(region: str) -> str:
    """Return the region whose price list has a region's prices; `""` when we know of none.

    Three regions answer for all of AWS, one for China; GovCloud and others have no such service.
    """
    for beginnings, found in _HOMES:
        if region.startswith(beginnings):
            return found
    return "us-east-1"


def filters(region: str, instance_type: str) -> list[dict[str, str]]:
    """Return what picks one type in one region: Linux, shared hardware, nothing reserved."""
    wanted = {
        "instanceType": instance_type,
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    return [{"Type": "TERM_MATCH", "Field": k, "Value": v} for k, v in wanted.items()]


def read(answers: Iterable[object], *, region: str, instance_type: str, now_s: float) -> CatalogRow:
    """Return what AWS's answers say, as a row with today's date; `price` judges the number.

    Args:
        answers: Products, each the text of a JSON document.
        region: Where it was asked for; other products are passed over.
        instance_type: What was asked for, likewise.
        now_s: Now.

    Raises:
        ValueError: They say nothing, or nothing sure; with the words for it.
    """
    today = dt.datetime.fromtimestamp(now_s, tz=dt.UTC)
    amounts = sorted(
        {
            amount
            for product in map(_product, answers)
            if _is_wanted(product, region, instance_type)
            for amount in _amounts(product, today)
        },
        key=str,  # NaN has no order
    )
    if not amounts:
        raise ValueError(
            f"AWS's price list has no on-demand price of {instance_type} in {region}; check that "
            "the type is sold there"
        )
    if len(amounts) > 1:
        named = ", ".join(f"{amount.per_hour:g} {amount.currency}" for amount in amounts)
        raise ValueError(
            f"AWS's price list has more than one price of {instance_type} in {region} ({named}), "
            "and which one counts is not known"
        )
    return CatalogRow(
        provider="aws",
        region=region,
        instance_type=instance_type,
        currency=amounts[0].currency,
        on_demand_per_hour=amounts[0].per_hour,
        source=SOURCE,
        as_of=today.date(),
    )


def _product(answer: object) -> Mapping[str, Any]:
    try:
        found = json.loads(answer) if isinstance(answer, str) else answer
    except (ValueError, RecursionError) as err:  # the latter from ever deeper brackets
        raise _unreadable(answer) from err
    return _mapping(found)


def _is_wanted(product: Mapping[str, Any], region: str, instance_type: str) -> bool:
    """Return whether a product is what was asked for. Capacity blocks are listed beside it at 0."""
    has = _mapping(_mapping(product.get("product")).get("attributes"))
    asked = {item["Field"]: item["Value"] for item in filters(region, instance_type)}
    is_same = all(has.get(field) == value for field, value in asked.items())
    return is_same and has.get("marketoption", "OnDemand") == "OnDemand"


def _amounts(product: Mapping[str, Any], today: dt.datetime) -> Iterator[Amount]:
    """Yield the prices by the hour of the newest term in force."""
    terms = _mapping(_mapping(product.get("terms")).get("OnDemand", {}))
    dated = [(_since(_mapping(term)), _mapping(term)) for term in terms.values()]
    in_force = [(since, term) for since, term in dated if since <= today]
    newest = max((since for since, _ in in_force), default=None)
    for since, term in in_force:
        if since == newest:
            for dimension in _mapping(term.get("priceDimensions")).values():
                yield from _hourly(_mapping(dimension))


def _since(term: Mapping[str, Any]) -> dt.datetime:
    text = term.get("effectiveDate")
    try:
        since = dt.datetime.fromisoformat(str(text))
    except ValueError as err:
        raise _unreadable(text) from err
    return since if since.tzinfo else since.replace(tzinfo=dt.UTC)


def _hourly(dimension: Mapping[str, Any]) -> Iterator[Amount]:
    """Yield the price of an hour, in dollars if there is one: other units are other things."""
    if dimension.get("unit") != _HOURS:
        return
    prices = _mapping(dimension.get("pricePerUnit"))
    for currency in [USD] if USD in prices else sorted(prices):
        try:
            amount = Amount(float(prices[currency]), currency)
        except (TypeError, ValueError) as err:
            raise _unreadable(prices[currency]) from err
        if not _CURRENCY.fullmatch(currency):
            raise _unreadable(currency)
        yield amount


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _unreadable(value)
    return value


def _unreadable(what: object) -> ValueError:
    return ValueError(f"AWS's price list cannot be read at {shown(what)}")
