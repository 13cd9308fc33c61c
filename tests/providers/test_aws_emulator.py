"""The AWS emulator does what EC2 does where moto does not, and can be run alone."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest

from hybrid.core.errors import ConflictError, InvalidRequestError
from tests.emulators import EMULATORS
from tests.emulators.__main__ import main
from tests.emulators.aws import IMAGE, AwsEmulator
from tests.node.box import wait_until
from tests.providers.aws_cloud import AwsCloud

pytestmark = pytest.mark.slow

REQUEST = {"ImageId": IMAGE, "InstanceType": "g5.xlarge", "MinCount": 1, "MaxCount": 1}


def run(aws: AwsCloud, **changes: Any) -> str:
    answer = aws.client.call("us-east-1", "ec2.run_instances", **REQUEST | changes)
    return str(answer["Instances"][0]["InstanceId"])


def fetch(url: str, *, method: str = "GET", told: object = None, **headers: str) -> str:
    data = None if told is None else json.dumps(told).encode()
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


def status(url: str, **headers: str) -> int:
    try:
        fetch(url, **headers)
    except urllib.error.HTTPError as err:
        with err:
            return err.code
    return 200


def metadata(emulator: AwsEmulator, ec2_id: str, path: str) -> str:
    base = f"{emulator.url}/imds/{ec2_id}/latest"
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = fetch(f"{base}/api/token", method="PUT", **ttl)
    return fetch(f"{base}/meta-data/{path}", **{"X-aws-ec2-metadata-token": token})


# --- lists ----------------------------------------------------------------------------------


def test_more_instances_than_one_page_of_moto_are_all_listed(aws: AwsCloud) -> None:
    made = {run(aws) for _ in range(102)}
    pages = aws.client.pages("us-east-1", "ec2.describe_instances", "Reservations", MaxResults=50)
    assert {one["InstanceId"] for reservation in pages for one in reservation["Instances"]} == made


def test_ended_instances_are_forgotten_when_it_is_told_so(aws: AwsCloud) -> None:
    aws.controls.ended_lists = 2
    ended, kept = run(aws), run(aws)
    aws.client.call("us-east-1", "ec2.terminate_instances", InstanceIds=[ended])

    assert [listed(aws) for _ in range(3)] == [{ended, kept}, {ended, kept}, {kept}]


def listed(aws: AwsCloud) -> set[str]:
    pages = aws.client.pages("us-east-1", "ec2.describe_instances", "Reservations")
    return {one["InstanceId"] for reservation in pages for one in reservation["Instances"]}


# --- launches -------------------------------------------------------------------------------


def test_a_token_stands_for_one_launch_in_a_zone(aws: AwsCloud) -> None:
    first = run(aws, ClientToken="t", Placement={"AvailabilityZone": "us-east-1a"})

    assert run(aws, ClientToken="t", Placement={"AvailabilityZone": "us-east-1a"}) == first
    assert run(aws, ClientToken="t", Placement={"AvailabilityZone": "us-east-1b"}) != first
    with pytest.raises(ConflictError, match="IdempotentParameterMismatch"):
        run(aws, ClientToken="t", KeyName="x", Placement={"AvailabilityZone": "us-east-1a"})


def test_a_token_of_an_ended_instance_is_used_up(aws: AwsCloud) -> None:
    aws.emulator.moto.find(run(aws, ClientToken="t")).terminate()

    with pytest.raises(ConflictError, match="IdempotentInstanceTerminated"):
        run(aws, ClientToken="t")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"UserData": "x" * 16_385}, "limited to 16384 bytes"),
        ({"InstanceType": "p99.huge"}, "for InstanceType"),
        ({"ImageId": "ami-0fffffffffffffff0"}, "does not exist"),
        ({"ClientToken": "t" * 65}, "too long"),
        (
            {
                "TagSpecifications": [
                    {"ResourceType": "instance", "Tags": [{"Key": "a b", "Value": ""}]}
                ],
                "MetadataOptions": {"InstanceMetadataTags": "enabled"},
            },
            "not a valid tag key",
        ),
    ],
    ids=["user-data", "type", "image", "token", "tag"],
)
def test_what_ec2_refuses_is_refused(aws: AwsCloud, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        run(aws, **changes)


FLEET_TEMPLATE = {"LaunchTemplateName": "machine", "Version": "1"}


def fleet(aws: AwsCloud, *kinds: str, **specification: str) -> Mapping[str, Any]:
    """Ask for a fleet of one whose tags for each kind are its own."""
    tags = [{"Key": "k", "Value": "v"}]
    chosen = FLEET_TEMPLATE | specification
    override = {"InstanceType": "g5.xlarge", "SubnetId": aws.emulator.moto.subnet("us-east-1a")}
    return aws.client.call(
        "us-east-1",
        "ec2.create_fleet",
        Type="instant",
        LaunchTemplateConfigs=[{"LaunchTemplateSpecification": chosen, "Overrides": [override]}],
        TargetCapacitySpecification={"TotalTargetCapacity": 1},
        TagSpecifications=[{"ResourceType": kind, "Tags": tags} for kind in kinds],
    )


@pytest.fixture
def template(aws: AwsCloud) -> None:
    data = {"ImageId": IMAGE, "MetadataOptions": {"InstanceMetadataTags": "enabled"}}
    aws.client.call(
        "us-east-1",
        "ec2.create_launch_template",
        LaunchTemplateName="machine",
        LaunchTemplateData=data,
    )


@pytest.mark.usefixtures("template")
def test_a_fleet_gives_its_instance_tags_and_user_data(aws: AwsCloud) -> None:
    script = base64.b64encode(b"#!/bin/sh").decode()

    answer = fleet(aws, "fleet", "instance", LaunchTemplateSpecificationUserData=script)

    ec2_id = answer["Instances"][0]["InstanceIds"][0]
    assert aws.emulator.moto.tags(ec2_id) == {"k": "v"}
    assert metadata(aws.emulator, ec2_id, "tags/instance/k") == "v"
    assert str(aws.emulator.moto.find(ec2_id).user_data) == script


@pytest.mark.usefixtures("template")
@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("spot-instances-request", {}, "cannot be tagged by a fleet"),
        ("fleet", {"Version": "2"}, "VersionNotFound"),
        ("fleet", {"LaunchTemplateName": "none"}, "does not exist"),
    ],
)
def test_what_a_fleet_cannot_have_is_refused(
    aws: AwsCloud, kind: str, changes: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        fleet(aws, kind, **changes)


def test_an_unknown_filter_is_refused(aws: AwsCloud) -> None:
    with pytest.raises(InvalidRequestError, match="filter 'colour' is invalid"):
        aws.client.call(
            "us-east-1", "ec2.describe_instances", Filters=[{"Name": "colour", "Values": ["red"]}]
        )


# --- metadata and interruption ----------------------------------------------------------------


def test_metadata_needs_a_token_of_the_instance_itself(aws: AwsCloud) -> None:
    options = {"HttpTokens": "required", "InstanceMetadataTags": "enabled"}
    one, other = (run(aws, MetadataOptions=options) for _ in range(2))
    url = f"{aws.emulator.url}/imds/{one}/latest"

    assert metadata(aws.emulator, one, "instance-id") == one
    assert status(f"{url}/meta-data/instance-id") == 401
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    stolen = fetch(f"{aws.emulator.url}/imds/{other}/latest/api/token", method="PUT", **ttl)
    assert status(f"{url}/meta-data/instance-id", **{"X-aws-ec2-metadata-token": stolen}) == 401
    assert status(f"{url}/api/token") == 400


def test_tags_are_in_the_metadata_only_where_that_was_asked_for(aws: AwsCloud) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "k", "Value": "v"}]}]
    shown = run(aws, TagSpecifications=tags, MetadataOptions={"InstanceMetadataTags": "enabled"})
    hidden = run(aws, TagSpecifications=tags)

    assert metadata(aws.emulator, shown, "tags/instance/k") == "v"
    with pytest.raises(urllib.error.HTTPError) as caught:
        metadata(aws.emulator, hidden, "tags/instance/k")
    caught.value.close()


def test_a_spot_instance_hears_of_its_end_before_it_comes(aws: AwsCloud) -> None:
    ec2_id = run(aws, InstanceMarketOptions={"MarketType": "spot"})
    url = f"{aws.emulator.url}/imds/{ec2_id}/latest/meta-data/spot/instance-action"
    assert status(url) == 404

    aws.emulator.interrupt(ec2_id, notice_s=0.5)

    assert json.loads(fetch(url))["action"] == "terminate"
    wait_until(lambda: aws.emulator.moto.find(ec2_id).state == "terminated", "the end")


# --- alone ------------------------------------------------------------------------------------


def test_every_cloud_has_its_line() -> None:
    assert set(EMULATORS) == {"aws", "baidu", "gcp"}


def test_an_emulator_runs_alone_and_obeys_over_http() -> None:
    command = [sys.executable, "-m", "tests.emulators", "aws"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("aws: ").strip()
        try:
            fetch(f"{url}/control/set_stock", told={"count": 0}, method="POST")
            fetch(f"{url}/control/set", told={"vcpu_limit": 4}, method="POST")
            fetch(f"{url}/control/fail", told={"action": "X", "code": "Y"}, method="POST")
            assert json.loads(fetch(f"{url}/control/calls")) == []
            for verb in ("no-such-verb", "interrupt"):
                assert status(f"{url}/control/{verb}") == 400
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()

    assert process.returncode == 0
    assert "AWS_ACCESS_KEY_ID" in rest
    assert f"endpoint_url: {url}" in rest


def test_a_name_that_is_no_cloud_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ibm"])

    assert "invalid choice: 'ibm'" in capsys.readouterr().err


def test_a_port_that_is_taken_is_an_error(aws: AwsCloud) -> None:
    with pytest.raises(OSError, match="in use"):
        AwsEmulator(int(aws.emulator.url.rpartition(":")[2]))
