"""AWS's price list: GetProducts, checked against botocore's own description of the service.

A product looks as AWS's do (seen in public test data of 2024): a JSON text with attributes, and
terms by SKU with their dimensions. Beside what is wanted stands what is not: other systems,
reserved hosts, unused reservations, and capacity blocks at a price of 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.emulators.aws.controls import Controls
from tests.emulators.aws.wire import Answer, Request

_TYPE = "application/x-amz-json-1.1"
_DECOYS: tuple[tuple[Mapping[str, str], str], ...] = (
    ({"operatingSystem": "Windows"}, "99.0"),
    ({"tenancy": "Dedicated"}, "98.0"),
    ({"preInstalledSw": "SQL Web"}, "97.0"),
    ({"capacitystatus": "UnusedCapacityReservation"}, "96.0"),
    ({"marketoption": "CapacityBlock"}, "0.0000000000"),
)
_WANTED = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}


@dataclass
class PriceList:
    """Answers for the prices that `Controls.list_prices` has."""

    controls: Controls

    def products(self, request: Request) -> Answer:
        """Answer GetProducts."""
        asked: dict[str, Any] = json.loads(request.body)
        if request.region not in _homes():
            return _error("UnrecognizedClientException", f"no price list in {request.region}")
        if problem := _problem(asked):
            return _error("InvalidParameterException", problem)
        if asked["ServiceCode"] != "AmazonEC2":
            return _error("NotFoundException", f"no service {asked['ServiceCode']}")
        token = asked.get("NextToken") or "0"
        if not token.isdecimal():
            return _error("InvalidNextTokenException", f"no such token: {token}")
        start = int(token)
        count = min(asked.get("MaxResults") or 100, self.controls.page_count)
        found = self._found(asked)
        more = start + count < len(found)
        answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": found[start:][:count]}
        return _json(200, answer | ({"NextToken": str(start + count)} if more else {}))

    def _found(self, asked: Mapping[str, Any]) -> list[object]:
        if self.controls.price_list is not None:
            return list(self.controls.price_list)
        wanted = {item["Field"]: item["Value"] for item in asked.get("Filters", ())}
        return [
            json.dumps(product)
            for product in self._all()
            if all(product["product"]["attributes"].get(k) == v for k, v in wanted.items())
        ]

    def _all(self) -> Iterator[dict[str, Any]]:
        for number, ((name, region), text) in enumerate(sorted(self.controls.list_prices.items())):
            amount, _, currency = text.partition(" ")
            for place, (changes, other) in enumerate(_DECOYS):
                yield product(f"D{number}X{place}", name, region, other, **changes)
            yield product(f"S{number}", name, region, amount, currency=currency or "USD")


def product(
    sku: str, name: str, region: str, amount: str, *, currency: str = "USD", **changes: str
) -> dict[str, Any]:
    """Return a product as AWS writes it, before it becomes text."""
    code = f"{sku}.JRTCKXETXF"
    dimension = {
        "unit": "Hrs",
        "endRange": "Inf",
        "description": f"${amount} per On Demand Linux {name} Instance Hour",
        "appliesTo": [],
        "rateCode": f"{code}.6YS6EN2CT7",
        "beginRange": "0",
        "pricePerUnit": {currency: amount},
    }
    term = {
        "priceDimensions": {f"{code}.6YS6EN2CT7": dimension},
        "sku": sku,
        "effectiveDate": "2024-04-01T00:00:00Z",
        "offerTermCode": "JRTCKXETXF",
        "termAttributes": {},
    }
    attributes = {"instanceType": name, "regionCode": region, "servicecode": "AmazonEC2"}
    return {
        "product": {
            "productFamily": "Compute Instance",
            "attributes": {**attributes, **_WANTED, **changes},
            "sku": sku,
        },
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {code: term}},
        "version": "20240508191027",
        "publicationDate": "2024-05-08T19:10:27Z",
    }


def _problem(asked: dict[str, Any]) -> str:
    """Return what AWS's own description of the call says against a request."""
    from botocore.validate import ParamValidator

    shape = _description().operation_model("GetProducts").input_shape
    report = ParamValidator().validate(asked, shape)
    if report.has_errors():
        return str(report.generate_report())
    # What botocore knows of the service and leaves to it to check.
    filters, kinds = asked.get("Filters", []), shape.members["Filters"].member.members["Type"].enum
    if unknown := {item["Type"] for item in filters} - set(kinds):
        return f"no such type of filter: {', '.join(sorted(unknown))}"
    for name, count in (("Filters", len(filters)), ("MaxResults", asked.get("MaxResults", 1))):
        if count > shape.members[name].metadata["max"]:
            return f"too many: {name}"
    return ""


@cache
def _description() -> Any:
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    return ServiceModel(Loader().load_service_model("pricing", "service-2"))


@cache
def _homes() -> frozenset[str]:
    import boto3

    session = boto3.Session()
    partitions = session.get_available_partitions()
    return frozenset(
        region for name in partitions for region in session.get_available_regions("pricing", name)
    )


def _error(code: str, message: str) -> Answer:
    return _json(400, {"__type": code, "message": message})


def _json(status: int, content: object) -> Answer:
    return Answer(status, _TYPE, json.dumps(content).encode())
