"""The policy in docs/fidelity/aws.md holds the actions that the adapter needs, and no other."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import AuthError
from hybrid.core.models import Offer
from hybrid.core.models.withheld import Withheld
from providers.aws.fleet import SWEEP_AFTER_S
from providers.aws.market import REFRESH_S
from tests.emulators.aws import IMAGE
from tests.providers.aws_cloud import POOL, TYPE, AwsCloud
from tests.providers.contract import launch, make_spec
from tests.world.clock import VirtualClock

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).parents[2] / "docs" / "fidelity" / "aws.md"


def policy() -> dict[str, Any]:
    text = DOCUMENT.read_text(encoding="utf-8").partition("<!-- policy -->")[2]
    content: dict[str, Any] = json.loads(text.partition("```json\n")[2].partition("\n```")[0])
    return content


def actions() -> set[str]:
    found: set[str] = set()
    for statement in policy()["Statement"]:
        words = statement["Action"]
        found |= {words} if isinstance(words, str) else set(words)
    return found


SPARED = {"ec2:DeleteLaunchTemplate", "ec2:DescribeLaunchTemplates"}
"""What is only tidied up, later or by the next one, stops nothing."""

ABOUT_OFFERS = {
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeSpotPriceHistory",
    "pricing:GetProducts",
}


def do_everything(aws: AwsCloud) -> None:
    """Use every call the adapter can make."""
    clock = VirtualClock(now_s=time.time())
    aws.clock = clock
    aws.controls.parameters["/ml/ami"] = IMAGE
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.4}
    aws.controls.list_prices = {(TYPE, "us-east-1"): "0.85"}
    spot = {k: v for k, v in POOL.items() if k not in ("usd_per_hour", "cpus")}
    aws.pools = [
        POOL | {"image": "ssm:/ml/ami", "usd_per_hour": None},
        spot | {"infra": "aws/us-east-1", "use_spot": True},
    ]
    provider = aws.provider()
    offers = provider.offers()
    ids = [launch(provider, make_spec(aws), offer=offer) for offer in offers]
    provider.list_instances()
    provider.extend(ids, until_s=2e9)
    provider.terminate(ids)
    clock.advance(SWEEP_AFTER_S + REFRESH_S)
    provider.offers()
    assert len(ids) == 2


def test_the_policy_is_enough(aws: AwsCloud) -> None:
    aws.controls.allowed = actions()

    do_everything(aws)


def test_nothing_in_the_policy_is_unused(aws: AwsCloud) -> None:
    do_everything(aws)

    made = {f"{call.endpoint}:{call.action}" for call in aws.controls.calls}
    assert made - {"sts:GetCallerIdentity"} == actions()  # which needs no permission


@pytest.mark.parametrize(
    "action",
    sorted(actions() - SPARED - ABOUT_OFFERS),
)
def test_without_one_of_them_it_stops_and_says_which(aws: AwsCloud, action: str) -> None:
    aws.controls.allowed = actions() - {action}

    with pytest.raises(AuthError, match=action):
        do_everything(aws)


@pytest.mark.parametrize("action", sorted(ABOUT_OFFERS))
def test_without_what_offers_need_those_pools_are_left_out_and_say_why(
    aws: AwsCloud, action: str
) -> None:
    aws.controls.allowed = actions() - {action}
    aws.controls.spot_usd_per_hour = {(TYPE, "us-east-1a"): 0.4}
    bare = {k: v for k, v in POOL.items() if k not in ("usd_per_hour", "cpus")}
    market = "on_demand" if action == "pricing:GetProducts" else "spot"
    aws.pools = [POOL, bare | {"infra": "aws/us-east-1/us-east-1b", "use_spot": market == "spot"}]
    aws.controls.spot_usd_per_hour |= {(TYPE, "us-east-1b"): 0.4}

    offer, left_out = aws.provider().pool_offers()

    assert isinstance(offer, Offer)
    assert isinstance(left_out, Withheld)
    assert action in left_out.reason.message


def test_what_is_made_needs_our_tags_and_what_is_ended_too() -> None:
    """The statements that keep an account safe from this program."""
    statements = {item["Sid"]: item for item in policy()["Statement"]}

    for made in ("RentOnlyWithOurTags", "FleetsOnlyWithOurTags", "TemplatesOnlyWithOurTags"):
        assert statements[made]["Condition"]["Null"]["aws:RequestTag/hybrid-cluster"] == "false"
    for used in ("EndOurs", "RemoveOurTemplates", "FleetsOnlyFromOurTemplates"):
        assert statements[used]["Condition"]["Null"]["aws:ResourceTag/hybrid-cluster"] == "false"
    assert statements["RenewLeases"]["Condition"]["ForAllValues:StringEquals"] == {
        "aws:TagKeys": ["hybrid-expires-at"]
    }
