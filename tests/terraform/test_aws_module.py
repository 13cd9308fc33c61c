"""The AWS module in the emulated account: what it makes is there, is used, and goes again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.moto_api._internal.models import moto_api_backend

from hybrid.settings import load
from providers.aws.params import Params
from tests.emulators.aws import IMAGE, AwsEmulator
from tests.terraform.account import (
    CREDENTIALS,
    EVERYTHING,
    NAME,
    REGION,
    VARIABLES,
    Applied,
    apply,
    settings,
)
from tests.terraform.account_contents import Account
from tests.terraform.workspace import Done, Workspace

pytestmark = pytest.mark.slow

IMPORTED = (
    "aws_vpc.this[0]",
    'aws_subnet.private["us-east-1a"]',
    "aws_security_group.node",
    "aws_s3_bucket.this[0]",
    "aws_iam_role.node",
    "aws_iam_policy.launcher",
)
"""What a team is likely to have already."""


@pytest.fixture
def workspace(aws_module: Workspace, emulator: AwsEmulator, tmp_path: Path) -> Iterator[Workspace]:
    """Yield the module in an emulated account that is empty, before and after."""
    moto_api_backend.reset()
    emulator.controls.parameters["/ml/ami"] = IMAGE
    workspace = aws_module.copy(tmp_path / "copy")
    workspace.env = {**CREDENTIALS, "AWS_ENDPOINT_URL": emulator.url}
    yield workspace
    moto_api_backend.reset()


@pytest.fixture(scope="module")
def standing(aws_module: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applied]:
    """Yield the module as it stands, for what only looks."""
    moto_api_backend.reset()
    emulator = AwsEmulator()
    yield apply(aws_module.copy(tmp_path_factory.mktemp("aws") / "copy"), emulator, VARIABLES)
    emulator.stop()
    moto_api_backend.reset()


def changes(plan: Done) -> list[str]:
    """Return what a plan would change."""
    assert plan.code in (0, 2), plan.errors()
    found = [m["change"] for m in plan.messages() if m["type"] == "planned_change"]
    return [f"{c['action']} {c['resource']['addr']}" for c in found]


def test_all_of_it_is_made_found_unchanged_used_imported_and_taken_away(
    workspace: Workspace, emulator: AwsEmulator
) -> None:
    account = Account(emulator)
    before = account.contents()

    applied = apply(workspace, emulator, EVERYTHING)
    made = account.contents() - before
    second = workspace.plan(EVERYTHING)

    assert second.code == 0, changes(second)
    assert len(workspace.in_state()) > 45
    assert {f"{NAME}-node", f"{NAME}-launcher", f"{NAME}-burst"} <= made

    # An instance from the template has what the template says.
    ec2 = account.client("ec2")
    launched = ec2.run_instances(
        LaunchTemplate={"LaunchTemplateId": applied.outputs["launch_template_id"]},
        ImageId=IMAGE,
        InstanceType="g5.xlarge",
        SubnetId=applied.outputs["private_subnet_ids"]["us-east-1a"],
        MinCount=1,
        MaxCount=1,
        ClientToken="by-hand",
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": "hybrid-cluster-name", "Value": NAME}]}
        ],
    )["Instances"][0]
    assert launched["SubnetId"] == applied.outputs["private_subnet_ids"]["us-east-1a"]
    ec2.terminate_instances(InstanceIds=[launched["InstanceId"]])

    # Somebody has these already: they are taken in, and nothing is to be changed.
    state = workspace.run("show", "-json").ok().read()["values"]["root_module"]["resources"]
    ids = {item["address"]: item["values"]["id"] for item in state}
    for address in IMPORTED:
        workspace.run("state", "rm", address).ok()
        _import(workspace, address, ids[address])
    assert changes(workspace.plan(EVERYTHING)) == []

    workspace.destroy(EVERYTHING).ok()

    assert account.contents() == before
    assert workspace.in_state() == []


def _import(workspace: Workspace, address: str, identity: str) -> None:
    given = [
        f"-var={key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in EVERYTHING.items()
    ]
    workspace.run("import", "-no-color", "-input=false", *given, address, identity).ok()


def test_a_network_and_a_bucket_that_exist_are_used_and_not_made(
    workspace: Workspace, emulator: AwsEmulator
) -> None:
    account = Account(emulator)
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.90.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.90.1.0/24", AvailabilityZone="us-east-1b")[
        "Subnet"
    ]["SubnetId"]
    account.client("s3").create_bucket(Bucket="the-teams-own")
    own = {
        **VARIABLES,
        "pools": [{"instance_type": "g5.xlarge"}],
        "availability_zones": [],
        "create_vpc": False,
        "vpc_id": vpc,
        "subnet_ids": {"us-east-1b": subnet},
        "create_bucket": False,
        "bucket": "the-teams-own",
    }

    overlap = workspace.plan({**own, "on_prem_cidrs": ["10.90.64.0/24"]}).errors()
    elsewhere = workspace.plan({**own, "subnet_ids": {"us-east-1a": subnet}}).errors()
    applied = apply(workspace, emulator, own)

    assert [text.splitlines()[0] for text in overlap] == [
        "Resource postcondition failed: on_prem_cidrs and 10.90.0.0/16, the addresses of "
        f"{vpc}, must not overlap: nothing could be routed between them."
    ]
    assert f"subnet_ids: {subnet} is in us-east-1b, not in us-east-1a." in elsewhere[0]
    region = applied.outputs["hybrid_provider"]["regions"][REGION]
    assert region["subnets"] == {"us-east-1b": subnet}
    assert applied.outputs["checkpoints"] == "s3://the-teams-own/checkpoints"
    kinds = {name.partition(".")[0] for name in workspace.in_state()}
    assert not {k for k in kinds if k.startswith(("aws_vpc_endpoint", "aws_s3", "aws_subnet"))}
    workspace.destroy(own).ok()
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_vpc(VpcId=vpc)
    account.client("s3").delete_bucket(Bucket="the-teams-own")


def test_a_second_network_of_the_same_name_is_refused_by_its_plan(
    standing: Applied, aws_module: Workspace, tmp_path: Path
) -> None:
    other = aws_module.copy(tmp_path / "other")
    other.env = dict(standing.workspace.env)

    errors = other.plan({**VARIABLES, "cidr_block": "10.80.0.0/16"}).errors()

    assert errors == [
        "Resource precondition failed: The account has a role lab-node that is not this "
        "module's: another network has the same name; choose another name."
    ]


def test_hybrid_takes_the_output_as_it_is(standing: Applied, tmp_path: Path) -> None:
    applied = standing
    account = settings(applied.outputs["hybrid_provider"])
    pools = account.pop("pools")
    file = tmp_path / "hybrid.yaml"
    file.write_text(
        json.dumps(
            {
                "name": applied.outputs["name"],
                "providers": {"aws": account},
                "clouds": {"ordered": pools},
                "jobs": {"checkpoints": applied.outputs["checkpoints"]},
                "budget": {"nodes": 2},
            }
        )
    )

    loaded = load(file, {"HOME": str(tmp_path)})

    assert loaded.clouds is not None
    Params.model_validate(loaded.provider_raw("aws"))
    assert [pool.infra for pool in loaded.clouds.pools] == [
        "aws/us-east-1/us-east-1a",
        "aws/us-east-1/us-east-1b",
        "aws/us-east-1",
    ]


# The last one with `standing`, which it changes.
def test_what_was_changed_or_deleted_by_hand_is_seen(
    standing: Applied,
) -> None:
    account = Account(standing.emulator)
    group = standing.outputs["security_group_id"]
    account.client("ec2").delete_tags(Resources=[group], Tags=[{"Key": "team"}])
    account.client("s3").delete_public_access_block(Bucket=standing.outputs["bucket"])

    found = changes(standing.workspace.plan(VARIABLES))

    assert found == [
        "create aws_s3_bucket_public_access_block.this[0]",
        "update aws_security_group.node",
    ]
