"""AWS against its emulator: the port's contract, and what an instance is made of."""

from __future__ import annotations

import re

import pytest

from hybrid.core.errors import (
    ConflictError,
    TransientError,
)
from providers.aws import make
from tests.emulators.aws import IMAGE
from tests.providers.aws_cloud import POOL, AwsCloud
from tests.providers.contract import ProviderContract, end, launch, listed, live, make_spec

pytestmark = pytest.mark.slow


class TestContract(ProviderContract):
    """Every promise of the port, for a pool of one zone: RunInstances."""

    @pytest.fixture
    def cloud(self, aws: AwsCloud) -> AwsCloud:
        return aws


class TestFleetContract(ProviderContract):
    """The same for a pool of a whole region: CreateFleet."""

    @pytest.fixture
    def cloud(self, aws: AwsCloud) -> AwsCloud:
        aws.pools = [POOL | {"infra": "aws/us-east-1"}]
        return aws


# --- what an instance is made of ------------------------------------------------------------


def asked(aws: AwsCloud, action: str = "RunInstances") -> dict[str, str]:
    """Return the parameters of the only request of a kind."""
    (call,) = [call for call in aws.controls.calls if call.action == action]
    return call.params


def test_an_instance_is_ended_by_its_own_shutdown_and_keeps_its_secrets(aws: AwsCloud) -> None:
    launch(aws.provider(), make_spec(aws))

    request = asked(aws)
    assert request["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert request["MetadataOptions.HttpTokens"] == "required"
    assert request["MetadataOptions.HttpPutResponseHopLimit"] == "1"
    assert request["MetadataOptions.InstanceMetadataTags"] == "enabled"
    assert request["BlockDeviceMapping.1.DeviceName"] == "/dev/sda1"
    assert request["BlockDeviceMapping.1.Ebs.Encrypted"] == "true"
    assert request["BlockDeviceMapping.1.Ebs.DeleteOnTermination"] == "true"
    assert request["BlockDeviceMapping.1.Ebs.VolumeSize"] == "100"
    assert (request["MinCount"], request["MaxCount"]) == ("1", "1")


def test_one_launch_is_one_call(aws: AwsCloud) -> None:
    provider = aws.provider()
    offer = provider.offers()[0]
    launch(provider, make_spec(aws), offer=offer)  # looks the image up once
    before = aws.controls.count()

    launch(provider, make_spec(aws), offer=offer)

    assert aws.controls.count() - before == 1


def test_the_token_and_all_tags_are_in_the_create_call(aws: AwsCloud) -> None:
    aws.more["tags"] = {"cost-centre": "ml"}
    spec = make_spec(aws)

    launch(aws.provider(), spec, token="t" * 40)

    request = asked(aws)
    assert request["ClientToken"] == "t" * 40
    kinds = {v for k, v in request.items() if k.endswith("ResourceType")}
    assert kinds == {"instance", "volume", "network-interface"}
    keys = {
        k: v for k, v in request.items() if re.fullmatch(r"TagSpecification\.1\.Tag\.\d+\.Key", k)
    }
    tags = {v: request[k.replace(".Key", ".Value")] for k, v in keys.items()}
    assert tags == {
        **spec.tags,
        "cost-centre": "ml",
        "Name": f"hybrid test {spec.instance_id}",
        "hybrid-expires-at": f"{spec.expires_at_s:.0f}",
        "hybrid-token": "t" * 40,
    }


def test_a_pool_says_where_and_what(aws: AwsCloud) -> None:
    region = aws.regions["us-east-1"]
    region |= {"disk": "200GiB", "key_name": "ops"}
    aws.pools = [POOL | {"infra": "aws/us-east-1/us-east-1b", "disk": "300GB"}]
    aws.emulator.moto.region("us-east-1").create_key_pair("ops", "rsa", [])

    provider_id = launch(aws.provider(), make_spec(aws))

    request = asked(aws)
    assert request["SubnetId"] == region["subnets"]["us-east-1b"]
    assert request["Placement.AvailabilityZone"] == "us-east-1b"
    assert request["SecurityGroupId.1"] == region["security_groups"][0]
    assert request["KeyName"] == "ops"
    assert request["BlockDeviceMapping.1.Ebs.VolumeSize"] == "280"  # 300 GB in GiB, rounded up
    assert "InstanceMarketOptions.MarketType" not in request
    assert aws.machine(provider_id).placement.zone == "us-east-1b"


def test_a_zone_without_a_subnet_uses_the_default_one(aws: AwsCloud) -> None:
    aws.regions["us-east-1"] = {"image": IMAGE}

    provider_id = launch(aws.provider(), make_spec(aws))

    assert "SubnetId" not in asked(aws)
    assert aws.machine(provider_id).placement.zone == "us-east-1a"


def test_spot_is_bought_once_and_ended_when_taken_back(aws: AwsCloud) -> None:
    aws.pools = [POOL | {"use_spot": True, "spot_limit_usd_per_hour": 1.5}]

    provider_id = launch(aws.provider(), make_spec(aws))

    request = asked(aws)
    prefix = "InstanceMarketOptions."
    options = {k.removeprefix(prefix): v for k, v in request.items() if k.startswith(prefix)}
    assert options == {
        "MarketType": "spot",
        "SpotOptions.SpotInstanceType": "one-time",
        "SpotOptions.InstanceInterruptionBehavior": "terminate",
        "SpotOptions.MaxPrice": "1.500000",
    }
    assert "spot-instances-request" in request.values()
    assert aws.machine(provider_id).lifecycle == "spot"


def test_an_image_can_be_the_value_of_a_parameter(aws: AwsCloud) -> None:
    aws.controls.parameters["/ml/ami"] = IMAGE
    aws.controls.images[IMAGE] = "/dev/xvda"
    aws.regions["us-east-1"]["image"] = "ssm:/ml/ami"
    provider = aws.provider()

    for _ in range(2):
        launch(provider, make_spec(aws))

    assert aws.controls.count("GetParameter") == aws.controls.count("DescribeImages") == 1
    requests = [call.params for call in aws.controls.calls if call.action == "RunInstances"]
    assert {r["ImageId"] for r in requests} == {IMAGE}
    assert {r["BlockDeviceMapping.1.DeviceName"] for r in requests} == {"/dev/xvda"}


def test_regions_are_listed_and_served_together(aws: AwsCloud) -> None:
    aws.regions["us-west-2"] = {"image": IMAGE}
    aws.pools = [POOL, POOL | {"infra": "aws/us-west-2/us-west-2a"}]
    provider = aws.provider()
    east, west = provider.offers()

    ids = [launch(provider, make_spec(aws), offer=offer) for offer in (east, west)]

    assert [name.split("/")[1] for name in ids] == ["us-east-1", "us-west-2"]
    assert set(live(provider)) == set(ids)
    provider.extend(ids, until_s=2e9)
    assert {item.expires_at_s for item in listed(provider).values()} == {2e9}
    end(provider, *ids)
    assert live(provider) == []


def test_the_instances_of_a_region_that_left_the_configuration_are_found(aws: AwsCloud) -> None:
    aws.regions["us-west-2"] = {"image": IMAGE}
    aws.pools = [POOL, POOL | {"infra": "aws/us-west-2/us-west-2a"}]
    provider = aws.provider()
    west = launch(provider, make_spec(aws), offer=provider.offers()[1])
    aws.pools = [POOL]
    later = aws.provider()

    later.extend([west], until_s=2e9)  # the ledger has its id

    assert live(later) == [west]
    end(later, west)
    assert live(later) == []


def test_a_region_in_trouble_does_not_keep_the_others_from_their_leases(aws: AwsCloud) -> None:
    aws.regions["us-west-2"] = {"image": IMAGE}
    aws.pools = [POOL, POOL | {"infra": "aws/us-west-2/us-west-2a"}]
    provider = aws.provider()
    ids = [launch(provider, make_spec(aws), offer=offer) for offer in provider.offers()]
    aws.controls.fail("DescribeInstances", "Unavailable")  # of the first region

    with pytest.raises(TransientError, match="us-east-1"):
        provider.extend(ids, until_s=2e9)

    assert aws.tags(ids[1])["hybrid-expires-at"] == "2000000000"


# --- tokens ---------------------------------------------------------------------------------


@pytest.mark.parametrize("infra", ["aws/us-east-1/us-east-1a", "aws/us-east-1"])
def test_a_changed_configuration_finds_what_the_token_made_before(
    aws: AwsCloud, infra: str
) -> None:
    aws.pools = [POOL | {"infra": infra}]
    spec = make_spec(aws)
    with pytest.raises(TransientError):
        launch(aws.lose_next_answer(), spec)
    subnets = aws.regions["us-east-1"]["subnets"]
    aws.regions["us-east-1"] |= {"disk": "500GB", "subnets": dict(list(subnets.items())[:1])}

    provider_id = launch(aws.provider(), spec)

    assert live(aws.provider()) == [provider_id]


def test_a_token_that_made_something_we_cannot_see_is_a_conflict(aws: AwsCloud) -> None:
    spec = make_spec(aws)
    with pytest.raises(TransientError):
        launch(aws.lose_next_answer(), spec)
    aws.regions["us-east-1"]["disk"] = "500GB"
    aws.controls.hidden_lists = 1

    with pytest.raises(ConflictError) as caught:
        launch(aws.provider(), spec)

    assert caught.value.code == "IdempotentParameterMismatch"
    assert launch(aws.provider(), spec) in live(aws.provider())


def test_of_two_attempts_the_one_of_the_token_is_found(aws: AwsCloud) -> None:
    spec = make_spec(aws)
    first = launch(aws.provider(), spec, token="one")
    again = spec.model_copy(update={"attempt": 2})
    with pytest.raises(TransientError):
        launch(aws.lose_next_answer(), again, token="two")
    aws.regions["us-east-1"]["disk"] = "500GB"

    second = launch(aws.provider(), again, token="two")

    assert second != first
    assert launch(aws.provider(), spec, token="one") == first


def test_another_token_of_the_same_instance_is_not_taken_for_it(aws: AwsCloud) -> None:
    provider, spec = aws.provider(), make_spec(aws)
    first = launch(provider, spec, token="one")

    second = launch(provider, spec.model_copy(update={"attempt": 2}), token="two")

    assert set(live(provider)) == {first, second}
    assert {item.instance_id for item in provider.list_instances()} == {spec.instance_id}


def test_make_needs_no_account_and_no_network(aws: AwsCloud) -> None:
    provider = make("aws", aws.raw(), aws.provider()._context)

    assert [offer.offer_id for offer in provider.offers()] == [
        "aws/us-east-1/us-east-1a/g5.xlarge/on_demand"
    ]
    assert aws.controls.calls == []
