"""A pool of a whole region: fleets of one, their partial failures, and their templates."""

from __future__ import annotations

import base64
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
from providers.aws.fleet import SWEEP_AFTER_S
from providers.aws.market import REFRESH_S
from tests.providers.aws_cloud import POOL, ZONES, AwsCloud
from tests.providers.contract import end, launch, live, make_spec
from tests.world.clock import VirtualClock

pytestmark = pytest.mark.slow


@pytest.fixture
def region(aws: AwsCloud) -> AwsCloud:
    """Return an account whose only pool is a whole region."""
    aws.pools = [
        POOL | {"infra": "aws/us-east-1", "use_spot": True, "spot_limit_usd_per_hour": 2.0}
    ]
    return aws


def templates(aws: AwsCloud) -> list[str]:
    return sorted(aws.emulator.moto.region("us-east-1").launch_template_name_to_ids)


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
    assert b"join-once" in base64.b64decode(template["LaunchTemplateData.UserData"])
    assert fleet["Type"] == "instant"
    assert fleet["SpotOptions.AllocationStrategy"] == "price-capacity-optimized"
    assert fleet["TargetCapacitySpecification.TotalTargetCapacity"] == "1"
    assert fleet["LaunchTemplateConfigs.1.Overrides.2.MaxPrice"] == "2.000000"


def test_a_launch_leaves_no_template_behind(region: AwsCloud) -> None:
    provider = region.provider()
    launch(provider, make_spec(region))
    region.sell_out()
    with pytest.raises(CapacityError):
        launch(provider, make_spec(region))
    region.controls.fail("CreateFleet", "UnauthorizedOperation")
    with pytest.raises(AuthError):
        launch(provider, make_spec(region))

    assert templates(region) == []


def test_a_lost_answer_keeps_the_template_for_the_next_try(region: AwsCloud) -> None:
    spec = make_spec(region)
    with pytest.raises(TransientError):
        launch(region.lose_next_answer(), spec)
    assert len(templates(region)) == 1

    provider_id = launch(region.provider(), spec)

    assert live(region.provider()) == [provider_id]
    assert templates(region) == []


def test_a_template_that_cannot_be_removed_costs_no_launch(region: AwsCloud) -> None:
    region.controls.fail("DeleteLaunchTemplate", "RequestLimitExceeded")
    provider = region.provider()

    provider_id = launch(provider, make_spec(region))

    assert live(provider) == [provider_id]
    assert len(templates(region)) == 1


def test_templates_that_were_left_are_swept_when_old_and_ours(region: AwsCloud) -> None:
    clock = VirtualClock(now_s=4e9)  # everything is old
    region.controls.fail("DeleteLaunchTemplate", "RequestLimitExceeded", times=2)
    launch(region.provider(), make_spec(region))
    other = region.provider("other-cluster")
    launch(other, make_spec(region, cluster_id="other-cluster"))
    ours, theirs = templates(region), []
    region.clock = clock
    region.emulator.controls.clock_skew_s = 0.0
    provider = region.provider()
    provider.offers()
    assert templates(region) == ours

    clock.advance(REFRESH_S)
    provider.offers()

    theirs = templates(region)
    assert len(theirs) == 1
    assert set(theirs) < set(ours)


def test_a_template_of_a_launch_under_way_is_not_swept(region: AwsCloud) -> None:
    spec = make_spec(region)
    with pytest.raises(TransientError):
        launch(region.lose_next_answer(), spec)
    provider = region.provider()

    provider._fleets.sweep("us-east-1", region.cluster_id)

    assert len(templates(region)) == 1
    assert SWEEP_AFTER_S > 600  # longer than any launch deadline


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
    assert templates(region) == []


def test_calls_per_launched_instance(region: AwsCloud) -> None:
    provider = region.provider()
    launch(provider, make_spec(region))
    before = region.controls.count()

    provider_id = launch(provider, make_spec(region))

    assert region.controls.count() - before == 3
    end(provider, provider_id)
