"""What AWS refuses, whose machines are whose, and what EC2 says late."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    InvalidRequestError,
    NotFoundError,
    QuotaError,
    TransientError,
)
from hybrid.core.models import CloudState
from providers.aws.once import Once
from tests.emulators.aws import IMAGE
from tests.providers.aws_cloud import ACCOUNT, POOL, AwsCloud
from tests.providers.contract import end, launch, listed, live, make_spec

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster_id": "not-ours"},
        {"instance_id": "$(reboot)"},
        {"labels": {"site": "a,b=c"}},
        {"labels": {f"label-{n}": "x" * 60 for n in range(300)}},
        {"head_address": "nowhere"},
        {"tags": {"hybrid-cluster": "x" * 300}},
        {"tags": {"a key/": "v"}},
    ],
)
def test_a_spec_that_cannot_be_is_refused_for_good(aws: AwsCloud, changes: dict[str, Any]) -> None:
    spec = make_spec(aws).model_copy(update=changes)

    with pytest.raises(InvalidRequestError):
        launch(aws.provider(), spec, token="t")

    assert aws.emulator.moto.instances("us-east-1") == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": "ami-0fffffffffffffff0"}, "does not exist"),
        ({"image": "ssm:/no/such"}, "ParameterNotFound"),
        ({"image": "ssm:/not/an/ami"}, "is not an image id"),
        ({"subnets": {"us-east-1a": "subnet-0fffffffffffffff0"}}, "subnet"),
    ],
)
def test_what_does_not_exist_is_named_and_refused_for_good(
    aws: AwsCloud, change: dict[str, Any], words: str
) -> None:
    aws.controls.parameters["/not/an/ami"] = "latest"
    aws.regions["us-east-1"] |= change

    with pytest.raises(InvalidRequestError, match=words):
        launch(aws.provider(), make_spec(aws))


def test_a_subnet_of_another_zone_is_refused(aws: AwsCloud) -> None:
    aws.regions["us-east-1"]["subnets"] = {"us-east-1a": aws.emulator.moto.subnet("us-east-1b")}

    with pytest.raises(InvalidRequestError, match="availability zone us-east-1b"):
        launch(aws.provider(), make_spec(aws))


def test_a_zone_that_is_sold_out_does_not_stop_another(aws: AwsCloud) -> None:
    aws.pools = [POOL, POOL | {"infra": "aws/us-east-1/us-east-1b"}]
    aws.controls.set_stock(0, zone="us-east-1a")
    provider = aws.provider()
    sold_out, other = provider.offers()

    with pytest.raises(CapacityError, match="us-east-1a"):
        launch(provider, make_spec(aws), offer=sold_out)

    provider_id = launch(provider, make_spec(aws), offer=other)
    assert live(provider) == [provider_id]


def test_an_instance_of_another_owner_with_a_similar_tag_is_never_touched(aws: AwsCloud) -> None:
    provider = aws.provider()
    theirs = []
    for tags in (
        {"hybrid-cluster": f"{aws.cluster_id}-2", "hybrid-instance": "i-1"},
        {"hybrid-cluster": aws.cluster_id.upper(), "hybrid-instance": "i-1"},
        {"Hybrid-Cluster": aws.cluster_id, "hybrid-instance": "i-1"},
        {"hybrid-cluster": aws.cluster_id},  # a person's machine with our tag copied
        {"Name": aws.cluster_id},
    ):
        items = [{"Key": key, "Value": value} for key, value in tags.items()]
        answer = aws.client.call(
            "us-east-1",
            "ec2.run_instances",
            ImageId=IMAGE,
            InstanceType="t3.micro",
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": items}],
        )
        theirs.append(f"{ACCOUNT}/us-east-1/{answer['Instances'][0]['InstanceId']}")

    assert listed(provider) == {}
    with pytest.raises(NotFoundError):
        provider.terminate(theirs)
    with pytest.raises(NotFoundError):
        provider.extend(theirs, until_s=time.time())
    mine = launch(provider, make_spec(aws))
    provider.terminate([mine, *theirs])

    states = {name: aws.machine(name).state for name in [mine, *theirs]}
    assert states == {mine: "terminated"} | dict.fromkeys(theirs, "running")


def test_what_another_account_does_not_know_is_not_gone(
    aws: AwsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials of a wrong account must not free what still costs money in the right one."""
    provider_id = launch(aws.provider(), make_spec(aws))
    aws.controls.account = "999999999999"
    aws.controls.forgotten.add(provider_id.rpartition("/")[2])
    monkeypatch.setattr(aws.client, "_account", Once())  # another process
    provider = aws.provider()

    with pytest.raises(AuthError, match=f"are in AWS account {ACCOUNT}"):
        provider.terminate([provider_id])
    with pytest.raises(AuthError):
        provider.extend([provider_id], until_s=time.time() + 60)

    assert listed(provider) == {}


def test_an_account_serves_two_clusters(aws: AwsCloud) -> None:
    one, two = aws.provider(), aws.provider("other-cluster")
    mine = launch(one, make_spec(aws))
    theirs = launch(two, make_spec(aws, cluster_id="other-cluster"))

    end(one, mine)

    assert (live(one), live(two)) == ([], [theirs])


# --- quota ----------------------------------------------------------------------------------


def test_a_quota_of_zero_is_a_quota_error_with_advice(aws: AwsCloud) -> None:
    aws.controls.vcpu_limit = 0

    with pytest.raises(QuotaError, match="Service Quotas") as caught:
        launch(aws.provider(), make_spec(aws))

    assert caught.value.code == "VcpuLimitExceeded"


def test_a_quota_counts_what_runs(aws: AwsCloud) -> None:
    aws.controls.vcpu_limit = 4
    provider = aws.provider()
    first = launch(provider, make_spec(aws))
    with pytest.raises(QuotaError):
        launch(provider, make_spec(aws))

    end(provider, first)

    assert launch(provider, make_spec(aws)) != first


# --- what EC2 says late -----------------------------------------------------------------------


def test_an_instance_that_is_not_listed_yet_is_listed_later(aws: AwsCloud) -> None:
    aws.controls.hidden_lists = 2
    aws.controls.pending_lists = 1
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))

    seen = [listed(provider).get(provider_id) for _ in range(4)]

    states = [item.state if item else None for item in seen]
    assert states == [None, None, CloudState.PENDING, CloudState.RUNNING]
    assert provider.list_lag_s >= 60


def test_what_was_launched_a_moment_ago_may_be_not_found(aws: AwsCloud) -> None:
    """The controller does not take it for gone before `list_lag_s` is over."""
    aws.controls.hidden_lists = 1
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))

    with pytest.raises(NotFoundError):
        provider.terminate([provider_id])

    provider.terminate([provider_id])
    assert live(provider) == []


def test_an_ended_instance_is_stopping_first_and_listed_as_gone_then(aws: AwsCloud) -> None:
    aws.controls.ending_lists = 2
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))
    provider.terminate([provider_id])

    states = [listed(provider)[provider_id].state for _ in range(3)]

    # The second call of `terminate` would look too; here only the lists do.
    assert states == [CloudState.STOPPING, CloudState.STOPPING, CloudState.GONE]
    assert listed(provider)[provider_id].problem == ""


def test_an_ended_instance_has_no_lease_to_renew(aws: AwsCloud) -> None:
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))
    end(provider, provider_id)

    with pytest.raises(NotFoundError):
        provider.extend([provider_id], until_s=time.time() + 60)

    assert aws.controls.count("CreateTags") == 0


def test_an_instance_that_ec2_forgot_is_not_found(aws: AwsCloud) -> None:
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))
    end(provider, provider_id)
    aws.controls.forgotten.add(provider_id.rpartition("/")[2])

    with pytest.raises(NotFoundError):
        provider.terminate([provider_id])

    assert listed(provider) == {}


def test_a_list_is_read_to_its_last_page(aws: AwsCloud) -> None:
    aws.controls.page_count = 2
    provider = aws.provider()
    ids = {launch(provider, make_spec(aws)) for _ in range(5)}
    before = aws.controls.count("DescribeInstances")

    found = set(live(provider))

    assert found == ids
    assert aws.controls.count("DescribeInstances") - before == 3


def test_a_list_that_breaks_off_is_unknown_and_not_short(aws: AwsCloud) -> None:
    aws.controls.page_count = 2
    provider = aws.provider()
    for _ in range(3):
        launch(provider, make_spec(aws))
    aws.controls.fail("DescribeInstances", "Unavailable", skip_count=1)

    with pytest.raises(TransientError):
        provider.list_instances()


# --- what people and AWS do to instances ------------------------------------------------------


def test_an_instance_deleted_by_hand_is_gone(aws: AwsCloud) -> None:
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))
    aws.machine(provider_id).terminate()

    assert listed(provider)[provider_id].state is CloudState.GONE


def test_a_stopped_instance_is_no_node_and_still_costs(aws: AwsCloud) -> None:
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))
    aws.emulator.moto.stop(provider_id.rpartition("/")[2])

    item = listed(provider)[provider_id]
    assert item.state is CloudState.STOPPING
    assert "stopped" in item.problem
    end(provider, provider_id)
    assert live(provider) == []


def test_a_spot_instance_taken_back_says_so(aws: AwsCloud) -> None:
    aws.pools = [POOL | {"use_spot": True}]
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))

    aws.emulator.moto.take_back(provider_id.rpartition("/")[2])

    item = listed(provider)[provider_id]
    assert item.state is CloudState.GONE
    assert item.problem.startswith("Server.SpotInstanceTermination")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("Client.InternalError", "Client error on launch"),  # its volume's key may not be used
        ("Client.VolumeLimitExceeded", "Volume limit exceeded"),
        ("Server.InsufficientInstanceCapacity", "no capacity after all"),
    ],
)
def test_an_instance_that_fails_after_it_was_accepted_is_gone_and_says_why(
    aws: AwsCloud, code: str, message: str
) -> None:
    aws.controls.pending_lists = 1
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))
    assert listed(provider)[provider_id].state is CloudState.PENDING

    aws.emulator.moto.fail_late(provider_id.rpartition("/")[2], code, message)

    item = listed(provider)[provider_id]
    assert (item.state, item.problem) == (CloudState.GONE, f"{code}: {message}")


def test_an_expiry_that_is_no_number_is_unknown(aws: AwsCloud) -> None:
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))
    for value in ("soon", "nan", ""):
        aws.machine(provider_id).add_tags({"hybrid-expires-at": value})

        assert listed(provider)[provider_id].expires_at_s is None
