"""The emulated price list refuses what botocore's own description of the call does not have."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from providers.aws import pricelist
from tests.providers.aws_cloud import TYPE, AwsCloud

pytestmark = pytest.mark.slow

FILTERS = pricelist.filters("us-east-1", TYPE)
GOOD: dict[str, Any] = {"ServiceCode": "AmazonEC2", "Filters": FILTERS}


@pytest.fixture
def listed(aws: AwsCloud) -> AwsCloud:
    aws.controls.list_prices = {(TYPE, "us-east-1"): "1.0060000000"}
    return aws


def ask(aws: AwsCloud, *, region: str = "us-east-1", **params: Any) -> dict[str, Any]:
    """Ask as no SDK would: nothing is checked on this side."""
    client = boto3.Session().client(
        "pricing",
        region_name=region,
        endpoint_url=aws.emulator.url,
        config=Config(parameter_validation=False, retries={"total_max_attempts": 1}),
    )
    try:
        answer: dict[str, Any] = client.get_products(**params)
    finally:
        client.close()
    return answer


def test_products_are_texts_with_what_aws_has_in_them(listed: AwsCloud) -> None:
    answer = ask(listed, **GOOD)

    assert answer["FormatVersion"] == "aws_v1"
    products = [json.loads(text) for text in answer["PriceList"]]
    assert [set(product) for product in products] == [
        {"product", "serviceCode", "terms", "version", "publicationDate"}
    ] * 2
    markets = [product["product"]["attributes"]["marketoption"] for product in products]
    assert markets == ["CapacityBlock", "OnDemand"]


def test_each_filter_of_ours_is_needed(listed: AwsCloud) -> None:
    """Without it something else would be in the answer, or everything."""
    count = len(ask(listed, **GOOD)["PriceList"])
    listed.controls.list_prices |= {("g5.2xlarge", "us-east-1"): "2", (TYPE, "eu-west-1"): "3"}
    for place in range(len(FILTERS)):
        fewer = [*FILTERS[:place], *FILTERS[place + 1 :]]
        assert len(ask(listed, **GOOD | {"Filters": fewer})["PriceList"]) > count, FILTERS[place]


def test_pages_lead_to_one_another(listed: AwsCloud) -> None:
    first = ask(listed, MaxResults=1, **GOOD)
    second = ask(listed, MaxResults=1, NextToken=first["NextToken"], **GOOD)

    assert "NextToken" not in second
    assert [*first["PriceList"], *second["PriceList"]] == ask(listed, **GOOD)["PriceList"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"Filters": [{"Type": "LIKE", "Field": "a", "Value": "b"}]}, "InvalidParameterException"),
        ({"Filters": [{"Type": "TERM_MATCH", "Field": "a"}]}, "InvalidParameterException"),
        ({"Filters": FILTERS * 10}, "InvalidParameterException"),
        ({"MaxResults": 101}, "InvalidParameterException"),
        ({"MaxResults": "many"}, "InvalidParameterException"),
        ({"NextToken": "next"}, "InvalidNextTokenException"),
        ({"ServiceCode": "EC2"}, "NotFoundException"),
        ({"region": "eu-west-1"}, "UnrecognizedClientException"),
    ],
    ids=lambda part: str(part)[:80],
)
def test_what_the_description_does_not_have_is_refused(
    listed: AwsCloud, changes: dict[str, Any], code: str
) -> None:
    with pytest.raises(ClientError) as caught:
        ask(listed, **GOOD | changes)

    assert caught.value.response["Error"]["Code"] == code


def test_without_the_permission_it_is_refused(listed: AwsCloud) -> None:
    listed.controls.allowed = {"ec2:DescribeInstances"}

    with pytest.raises(ClientError, match="pricing:GetProducts"):
        ask(listed, **GOOD)
