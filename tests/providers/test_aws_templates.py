"""Launch templates: one for all launches of a kind, made when needed and removed when not."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hybrid.core.errors import AuthError, ProviderError, TransientError
from hybrid.core.models import LaunchSpec
from providers.aws.fleet import SWEEP_AFTER_S
from providers.aws.market import REFRESH_S
from tests.emulators.aws import IMAGE
from tests.providers.aws_cloud import POOL, AwsCloud
from tests.providers.contract import launch, live, make_spec
from tests.world.clock import VirtualClock

pytestmark = pytest.mark.slow

GONE = "InvalidLaunchTemplateName.NotFoundException"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(now_s=time.time())


@pytest.fixture
def region(aws: AwsCloud, clock: VirtualClock) -> AwsCloud:
    """Return an account whose only pool is a whole region."""
    aws.pools = [POOL | {"infra": "aws/us-east-1"}]
    aws.clock = clock
    return aws


def templates(aws: AwsCloud) -> list[str]:
    return sorted(aws.emulator.moto.region("us-east-1").launch_template_name_to_ids)


def remove(aws: AwsCloud, name: str) -> None:
    """Remove a template as a person does."""
    aws.client.call("us-east-1", "ec2.delete_launch_template", LaunchTemplateName=name)


def made(aws: AwsCloud, what: dict[str, object], spec: LaunchSpec) -> str:
    """Return the name of the template that a launch with changed settings uses."""
    before = aws.regions["us-east-1"]
    aws.regions["us-east-1"] = before | what
    launch(aws.provider(spec.cluster_id), spec)
    aws.regions["us-east-1"] = before
    key = "LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName"
    return [call.params[key] for call in aws.controls.calls if call.action == "CreateFleet"][-1]


def test_launches_of_one_kind_share_a_template_over_restarts(region: AwsCloud) -> None:
    for epoch in (1, 2):
        spec = make_spec(region)
        tags = {**spec.tags, "hybrid-epoch": str(epoch)}
        launch(region.provider(), spec.model_copy(update={"epoch": epoch, "tags": tags}))

    assert len(templates(region)) == 1


def test_a_template_is_named_by_what_is_inside(region: AwsCloud) -> None:
    region.controls.images["ami-0123456789abcdef1"] = "/dev/sda1"
    one = made(region, {}, make_spec(region))

    others = [
        made(region, {"disk": "300GiB"}, make_spec(region)),
        made(region, {"image": "ami-0123456789abcdef1"}, make_spec(region)),
        made(region, {}, make_spec(region, cluster_id="other-cluster")),
    ]
    again = made(region, {"image": IMAGE}, make_spec(region))

    assert again == one
    assert len({one, *others}) == 4
    assert templates(region) == sorted([one, *others])


def test_no_secret_and_nothing_of_one_instance_is_in_a_template(region: AwsCloud) -> None:
    spec = make_spec(region)

    launch(region.provider(), spec, token="token-of-one")

    (call,) = [c for c in region.controls.calls if c.action == "CreateLaunchTemplate"]
    text = str(call.params)
    assert "UserData" not in text
    for word in ("join-once", spec.instance_id, "token-of-one", "expires"):
        assert word not in text
    assert spec.cluster_id in text


def test_threads_that_launch_at_once_make_it_once(region: AwsCloud) -> None:
    provider = region.provider()
    offer = provider.offers()[0]
    region.controls.fail("CreateLaunchTemplate", is_after=True, delay_s=0.3)  # they all wait

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: launch(provider, make_spec(region), offer=offer), range(8)))

    assert len(ids) == 8
    for action in ("CreateLaunchTemplate", "DescribeImages"):
        assert region.controls.count(action) == 1


def test_those_who_wait_for_a_template_hear_why_there_is_none(region: AwsCloud) -> None:
    provider = region.provider()
    offer = provider.offers()[0]
    region.controls.fail("CreateLaunchTemplate", "UnauthorizedOperation", delay_s=0.3, times=1)

    def attempt(_: int) -> type[ProviderError] | None:
        try:
            launch(provider, make_spec(region), offer=offer)
        except ProviderError as error:
            return type(error)
        return None

    with ThreadPoolExecutor(4) as pool:
        kinds = set(pool.map(attempt, range(4)))

    assert AuthError in kinds
    assert launch(provider, make_spec(region), offer=offer) in live(provider)


def test_two_controllers_share_it(region: AwsCloud) -> None:
    one, two = region.provider(), region.provider()

    ids = {launch(provider, make_spec(region)) for provider in (one, two, one, two)}

    assert set(live(one)) == ids
    assert len(templates(region)) == 1


def test_a_template_that_was_removed_by_hand_is_made_anew(region: AwsCloud) -> None:
    provider = region.provider()
    launch(provider, make_spec(region))
    (name,) = templates(region)
    remove(region, name)
    before = region.controls.count()

    provider_id = launch(provider, make_spec(region))

    assert provider_id in live(provider)
    assert templates(region) == [name]
    # The call that failed, the template, the call again; and the list above.
    assert region.controls.count() - before == 4


def test_a_template_that_is_not_seen_everywhere_yet_is_waited_for(region: AwsCloud) -> None:
    """EC2 is eventually consistent: a refusal for good would stop the offer."""
    provider, spec = region.provider(), make_spec(region)
    region.controls.fail("CreateFleet", GONE, times=2)

    with pytest.raises(TransientError):
        launch(provider, spec)

    assert region.controls.count("CreateFleet") == 2
    assert launch(provider, spec) in live(provider)


def test_a_fleet_whose_zones_miss_the_template_does_not_stop_the_offer(region: AwsCloud) -> None:
    provider = region.provider()
    region.controls.fail("CreateFleet.pool", GONE, times=2)

    with pytest.raises(ProviderError) as caught:
        launch(provider, make_spec(region))

    assert type(caught.value).__name__ == "CapacityError"
    launch(provider, make_spec(region))
    assert region.controls.count("CreateLaunchTemplate") == 2


def test_what_a_person_adds_to_a_template_is_not_launched(region: AwsCloud) -> None:
    provider = region.provider()
    launch(provider, make_spec(region))
    region.client.call(
        "us-east-1",
        "ec2.create_launch_template_version",
        LaunchTemplateName=templates(region)[0],
        LaunchTemplateData={"ImageId": "ami-0fffffffffffffff0"},
    )

    assert launch(provider, make_spec(region)) in live(provider)


# --- removing them ----------------------------------------------------------------------------


def test_a_template_is_removed_when_no_launch_needed_it_for_an_hour(
    region: AwsCloud, clock: VirtualClock
) -> None:
    provider = region.provider()
    launch(provider, make_spec(region))
    clock.advance(SWEEP_AFTER_S)
    launch(provider, make_spec(region))
    clock.advance(REFRESH_S)
    provider.offers()
    assert len(templates(region)) == 1

    clock.advance(SWEEP_AFTER_S)
    provider.offers()

    assert templates(region) == []
    assert launch(provider, make_spec(region)) in live(provider)


def test_a_template_of_an_earlier_configuration_or_process_is_removed(
    region: AwsCloud, clock: VirtualClock
) -> None:
    launch(region.provider(), make_spec(region))
    (old,) = templates(region)
    region.regions["us-east-1"] |= {"disk": "300GiB"}
    provider = region.provider()
    clock.advance(SWEEP_AFTER_S + 1)
    launch(provider, make_spec(region))

    provider.offers()

    assert len(templates(region)) == 1
    assert old not in templates(region)


def test_a_fresh_template_of_another_process_is_kept(region: AwsCloud, clock: VirtualClock) -> None:
    launch(region.provider(), make_spec(region))
    provider = region.provider()
    clock.advance(REFRESH_S)

    provider.offers()

    assert len(templates(region)) == 1
    assert SWEEP_AFTER_S > 600  # longer than any launch deadline


def test_templates_of_others_are_not_removed(region: AwsCloud, clock: VirtualClock) -> None:
    launch(region.provider("other-cluster"), make_spec(region, cluster_id="other-cluster"))
    tags = [{"Key": "hybrid-cluster", "Value": region.cluster_id}]  # copied by a person
    region.client.call(
        "us-east-1",
        "ec2.create_launch_template",
        LaunchTemplateName="theirs",
        LaunchTemplateData={"ImageId": IMAGE},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
    )
    before = templates(region)
    provider = region.provider()
    clock.advance(2 * SWEEP_AFTER_S)

    provider.offers()
    provider.tidy()

    assert templates(region) == before


def test_a_template_that_cannot_be_removed_costs_nothing(
    region: AwsCloud, clock: VirtualClock
) -> None:
    provider = region.provider()
    launch(provider, make_spec(region))
    region.controls.fail("DeleteLaunchTemplate", "RequestLimitExceeded")
    region.controls.fail("DescribeLaunchTemplates", "RequestLimitExceeded")
    for _ in range(2):
        clock.advance(2 * SWEEP_AFTER_S)
        assert provider.offers()
        assert len(templates(region)) == 1

    clock.advance(2 * SWEEP_AFTER_S)
    provider.offers()

    assert templates(region) == []


def test_a_cluster_that_goes_down_leaves_no_template(region: AwsCloud) -> None:
    provider = region.provider()
    launch(provider, make_spec(region))

    region.provider().tidy()  # whichever process it is

    assert templates(region) == []


def test_a_template_that_a_cluster_leaves_is_an_error_that_names_its_region(
    region: AwsCloud,
) -> None:
    for disk in ("100GiB", "200GiB"):
        made(region, {"disk": disk}, make_spec(region))
    region.controls.fail("DeleteLaunchTemplate", "UnauthorizedOperation")

    with pytest.raises(AuthError, match="delete_launch_template in us-east-1"):
        region.provider().tidy()

    assert len(templates(region)) == 1


def test_a_cluster_without_pools_of_a_region_has_nothing_to_tidy(aws: AwsCloud) -> None:
    aws.provider().tidy()

    assert aws.controls.calls == []
