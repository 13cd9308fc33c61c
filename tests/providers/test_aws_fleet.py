"""A pool of a whole region: fleets of one, and their partial failures."""

from __future__ import annotations

import base64
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    InvalidRequestError,
    ProviderError,
    QuotaError,
    TransientError,
)
from providers.aws.market import IMAGE_S
from tests.emulators.aws import IMAGE
from tests.providers.aws_cloud import POOL, ZONES, AwsCloud
from tests.providers.contract import launch, listed, live, make_spec
from tests.providers.test_aws_emulator import metadata
from tests.world.clock import VirtualClock

pytestmark = pytest.mark.slow

SPECIFICATION = "LaunchTemplateConfigs.1.LaunchTemplateSpecification"


@pytest.fixture
def region(aws: AwsCloud) -> AwsCloud:
    """Return an account whose only pool is a whole region."""
    aws.pools = [
        POOL | {"infra": "aws/us-east-1", "use_spot": True, "spot_limit_usd_per_hour": 2.0}
    ]
    return aws


def test_a_fleet_lands_where_there_is_something(region: AwsCloud) -> None:
    region.controls.set_stock(0, zone=ZONES[0])

    provider_id = launch(region.provider(), make_spec(region))

    assert region.machine(provider_id).placement.zone == ZONES[1]
    assert region.machine(provider_id).lifecycle == "spot"


def test_a_fleets_instance_is_made_like_any_other(region: AwsCloud) -> None:
    provider, spec = region.provider(), make_spec(region)

    provider_id = launch(provider, spec)

    machine = region.machine(provider_id)
    assert machine.instance_initiated_shutdown_behavior == "terminate"
    assert machine.metadata_options.http_tokens == "required"
    assert machine.metadata_options.instance_metadata_tags == "enabled"
    tags = region.tags(provider_id)
    assert tags.items() >= spec.tags.items()
    assert tags["hybrid-expires-at"] == f"{spec.expires_at_s:.0f}"
    template, fleet = (
        next(call.params for call in region.controls.calls if call.action == action)
        for action in ("CreateLaunchTemplate", "CreateFleet")
    )
    assert "LaunchTemplateData.UserData" not in template
    script = fleet[f"{SPECIFICATION}.LaunchTemplateSpecificationUserData"]
    assert base64.b64decode(script).decode() == base64.b64decode(str(machine.user_data)).decode()
    assert b"join-once" in base64.b64decode(script)
    kinds = {v for k, v in fleet.items() if k.endswith("ResourceType")}
    assert kinds == {"fleet", "instance", "network-interface", "volume"}
    assert fleet["Type"] == "instant"
    assert fleet["SpotOptions.AllocationStrategy"] == "price-capacity-optimized"
    assert fleet["TargetCapacitySpecification.TotalTargetCapacity"] == "1"
    assert fleet["LaunchTemplateConfigs.1.Overrides.2.MaxPrice"] == "2.000000"


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        (["InsufficientInstanceCapacity"] * 2, CapacityError),
        (["VcpuLimitExceeded"] * 2, QuotaError),
        (["InvalidSubnetID.NotFound"] * 2, InvalidRequestError),
        (["UnauthorizedOperation"] * 2, AuthError),
        (["InvalidSubnetID.NotFound", "InsufficientInstanceCapacity"], CapacityError),
        (["VcpuLimitExceeded", "InsufficientInstanceCapacity"], CapacityError),
        # The same call would bring the same answer: it must not be asked for.
        (["RequestLimitExceeded"] * 2, CapacityError),
        (["InternalError"] * 2, CapacityError),
    ],
)
def test_an_empty_fleet_says_why_each_zone_failed(
    region: AwsCloud, codes: list[str], kind: type[ProviderError]
) -> None:
    for zone, code in zip(ZONES, codes, strict=True):
        region.controls.fail("CreateFleet.pool", code, message=f"in {zone}", zone=zone)

    with pytest.raises(ProviderError) as caught:
        launch(region.provider(), make_spec(region))

    assert type(caught.value) is kind
    assert all(f"in {zone}" in str(caught.value) for zone in ZONES)
    assert live(region.provider()) == []


def test_the_same_token_of_an_empty_fleet_stays_empty(region: AwsCloud) -> None:
    """EC2 repeats its answer: only another token finds what has come in since."""
    region.sell_out()
    spec = make_spec(region)
    with pytest.raises(CapacityError):
        launch(region.provider(), spec)
    region.controls.stock.clear()

    with pytest.raises(CapacityError):
        launch(region.provider(), spec)

    assert launch(region.provider(), make_spec(region)) in live(region.provider())


@pytest.mark.parametrize("action", ["CreateLaunchTemplate", "CreateFleet"])
@pytest.mark.parametrize(
    "fault", [{"code": "InternalError"}, {"is_dropped": True}, {"is_dropped": True, "is_after": 1}]
)
def test_a_launch_broken_off_anywhere_is_finished_by_the_next_try(
    region: AwsCloud, action: str, fault: dict[str, Any]
) -> None:
    spec = make_spec(region)
    region.controls.fail(action, **fault)
    with pytest.raises(TransientError):
        launch(region.provider(), spec)

    provider_id = launch(region.provider(), spec)

    assert live(region.provider()) == [provider_id]
    assert len(region.emulator.moto.instances("us-east-1")) == 1


def test_an_instance_of_a_fleet_reads_its_lease_in_its_metadata(region: AwsCloud) -> None:
    spec = make_spec(region)

    ec2_id = launch(region.provider(), spec).rpartition("/")[2]

    lease = metadata(region.emulator, ec2_id, "tags/instance/hybrid-expires-at")
    assert lease == f"{spec.expires_at_s:.0f}"


def test_a_hundred_launches_cost_hardly_more_than_a_hundred_calls(region: AwsCloud) -> None:
    """As the controller does it: many at once, over one adapter."""
    provider = region.provider()
    offer = provider.offers()[0]
    specs = [make_spec(region) for _ in range(100)]
    before = region.controls.count()

    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda spec: launch(provider, spec, offer=offer), specs))

    assert region.controls.count() - before <= 103  # and the account, the image, the template
    assert region.controls.count("CreateFleet") == 100
    assert region.controls.count("CreateLaunchTemplate") == 1
    found = {item.instance_id: provider_id for provider_id, item in listed(provider).items()}
    assert found == {spec.instance_id: made for spec, made in zip(specs, ids, strict=True)}


def test_each_node_of_many_gets_its_own_orders(region: AwsCloud) -> None:
    provider = region.provider()
    specs = [make_spec(region) for _ in range(2)]

    ids = [launch(provider, spec) for spec in specs]

    for spec, provider_id in zip(specs, ids, strict=True):
        script = base64.b64decode(str(region.machine(provider_id).user_data)).decode()
        assert f'"instance_id":"{spec.instance_id}"' in script


@pytest.mark.parametrize("action", ["CreateLaunchTemplate", "CreateFleet"])
def test_what_ec2_refuses_for_good_is_asked_for_once(region: AwsCloud, action: str) -> None:
    region.controls.fail(action, "InvalidParameterValue")

    with pytest.raises(InvalidRequestError):
        launch(region.provider(), make_spec(region))

    assert region.controls.count(action) == 1


def test_an_image_that_changes_makes_another_template_within_the_hour(region: AwsCloud) -> None:
    clock = VirtualClock(now_s=time.time())
    newer = "ami-0123456789abcdef1"
    region.clock = clock
    region.regions["us-east-1"]["image"] = "ssm:/ml/ami"
    region.controls.parameters["/ml/ami"] = IMAGE
    region.controls.images[newer] = "/dev/sda1"
    provider = region.provider()
    launch(provider, make_spec(region))
    region.controls.parameters["/ml/ami"] = newer

    launch(provider, make_spec(region))
    clock.advance(IMAGE_S)
    launch(provider, make_spec(region))

    made = [c.params for c in region.controls.calls if c.action == "CreateLaunchTemplate"]
    assert [params["LaunchTemplateData.ImageId"] for params in made] == [IMAGE, newer]
