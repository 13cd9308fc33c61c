"""Mistakes in the AWS module that somebody could make, each found by some check.

The mistakes of one kind of check go into one copy of the module, and each must be found there by
words of its own: so no mistake hides behind another, and a check runs once for all of them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from moto.moto_api._internal.models import moto_api_backend

from tests.emulators.aws import AwsEmulator
from tests.terraform.account import CREDENTIALS, VARIABLES, apply
from tests.terraform.iam.simulator import Question, ask
from tests.terraform.tools import checkov
from tests.terraform.workspace import TERRAFORM, Workspace

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Mistake:
    """One edit of one file, and the words by which a check must name it."""

    file: str
    right: str
    wrong: str
    words: str


def with_mistakes(module: Workspace, folder: Path, mistakes: Mapping[str, Mistake]) -> Workspace:
    """Return a copy of the module in which all mistakes were made."""
    workspace = module.copy(folder)
    for name, mistake in mistakes.items():
        path = workspace.folder / mistake.file
        text = path.read_text(encoding="utf-8")
        assert text.count(mistake.right) >= 1, f"{name}: {mistake.file} has no {mistake.right!r}"
        path.write_text(text.replace(mistake.right, mistake.wrong, 1), encoding="utf-8")
    return workspace


# --- found by `terraform validate`, which knows the real provider's schema --------------------

INVALID = {
    "an argument that does not exist": Mistake(
        "network.tf",
        "cidr_block        = cidrsubnet(var.cidr_block, 4,",
        "cidr              = cidrsubnet(var.cidr_block, 4,",
        'An argument named "cidr" is not expected here',
    ),
    "a misspelt argument": Mistake(
        "launch.tf",
        "      resource_type = tag_specifications.value\n",
        "      resource_typ = tag_specifications.value\n",
        'An argument named "resource_typ" is not expected here',
    ),
    "a required argument that is missing": Mistake(
        "iam.tf",
        '  role   = aws_iam_role.node.name\n  policy = jsonencode({ Version = "2012-10-17", '
        "Statement = local.data",
        '  policy = jsonencode({ Version = "2012-10-17", Statement = local.data',
        'The argument "role" is required',
    ),
    "a block twice": Mistake(
        "launch.tf",
        "  iam_instance_profile {",
        "  iam_instance_profile {}\n  iam_instance_profile {",
        'No more than 1 "iam_instance_profile" blocks are allowed',
    ),
    "an argument of the wrong type": Mistake(
        "network.tf",
        "  enable_dns_support   = true",
        '  enable_dns_support   = ["yes"]',
        'Inappropriate value for attribute "enable_dns_support"',
    ),
    "an argument that AWS decides on": Mistake(
        "storage.tf",
        "  force_destroy = false",
        '  force_destroy = false\n  arn           = "arn:aws:s3:::x"',
        "its value is decided by the provider",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_validate_finds(aws_module: Workspace, tmp_path: Path, name: str) -> None:
    workspace = with_mistakes(aws_module, tmp_path / "copy", {name: INVALID[name]})

    errors = workspace.validate()

    assert any(INVALID[name].words in error for error in errors), errors


# --- found by the module's own tests ----------------------------------------------------------

UNLAWFUL = {
    "nodes open to the internet": Mistake(
        "network.tf",
        "  cidr_ipv4         = each.value.cidr",
        '  cidr_ipv4         = "0.0.0.0/0"',
        "Only on_prem_cidrs may reach a node.",
    ),
    "nodes open to addresses": Mistake(
        "network.tf",
        '  description                  = "Nodes among themselves"\n'
        '  ip_protocol                  = "-1"\n'
        "  referenced_security_group_id = aws_security_group.node.id",
        '  description = "Nodes among themselves"\n  ip_protocol = "-1"\n'
        '  cidr_ipv4   = "10.0.0.0/8"',
        "Nodes talk to nodes, not to addresses.",
    ),
    "volumes in the clear": Mistake(
        "launch.tf",
        '      encrypted             = "true"',
        '      encrypted             = "false"',
        "Volumes are encrypted.",
    ),
    "a bucket that speaks HTTP": Mistake(
        "storage.tf",
        '"aws:SecureTransport" = "false"',
        '"aws:SecureTransport" = "true"',
        "The bucket speaks TLS only.",
    ),
    "a bucket that is emptied": Mistake(
        "storage.tf",
        "  force_destroy = false",
        "  force_destroy = true",
        "Destroying must not empty the bucket.",
    ),
    "nodes in the public subnet": Mistake(
        "network.tf",
        "{ for zone, subnet in aws_subnet.private : zone => subnet.id }",
        "{ for zone, subnet in aws_subnet.public : zone => subnet.id }",
        "The private subnet, not the public one.",
    ),
    "a budget that counts nothing": Mistake(
        "budget.tf",
        'format("user:hybrid-cluster-name$%s", var.name)',
        '"user:hybrid-cluster-name$${var.name}"',
        "The budget counts what carries the cluster's name.",
    ),
    "a public way without a NAT gateway": Mistake(
        "network.tf",
        "  count  = local.has_nat ? 1 : 0\n  domain",
        "  count  = var.create_vpc ? 1 : 0\n  domain",
        "Without a NAT gateway there is nothing public.",
    ),
}


@pytest.fixture(scope="module")
def unlawful(aws_module: Workspace, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what `terraform test` says about a copy with all mistakes."""
    folder = tmp_path_factory.mktemp("unlawful") / "copy"
    done = with_mistakes(aws_module, folder, UNLAWFUL).test()
    assert done.code == 1
    return done.out + done.err


@pytest.mark.parametrize("name", UNLAWFUL)
def test_the_modules_tests_find(unlawful: str, name: str) -> None:
    assert UNLAWFUL[name].words in unlawful


def test_the_modules_tests_find_nothing_in_the_module(aws_module: Workspace) -> None:
    done = aws_module.test().ok()

    assert "0 failed" in done.out


# --- found by checkov -------------------------------------------------------------------------

UNSAFE = {
    "IMDSv1": Mistake(
        "launch.tf",
        '    http_tokens                 = "required"',
        '    http_tokens                 = "optional"',
        "CKV_AWS_79 aws_launch_template.node",
    ),
    "a public bucket": Mistake(
        "storage.tf",
        "  block_public_policy     = true",
        "  block_public_policy     = false",
        "CKV_AWS_54 aws_s3_bucket_public_access_block.this[0]",
    ),
    "a bucket without versions": Mistake(
        "storage.tf",
        'status = "Enabled"\n  }\n}\n\nresource "aws_s3_bucket_server',
        'status = "Suspended"\n  }\n}\n\nresource "aws_s3_bucket_server',
        "CKV_AWS_21 aws_s3_bucket.this[0]",
    ),
    "nodes with public addresses": Mistake(
        "network.tf",
        "cidr_block        = cidrsubnet(var.cidr_block, 4, each.value + 1)",
        "cidr_block        = cidrsubnet(var.cidr_block, 4, each.value + 1)\n"
        "  map_public_ip_on_launch = true",
        "CKV_AWS_130 aws_subnet.private",
    ),
    "a group without a word": Mistake(
        "network.tf",
        '  description       = "Head and own machines"\n  ip_protocol       = "tcp"',
        '  ip_protocol       = "tcp"',
        "CKV_AWS_23 aws_vpc_security_group_ingress_rule.on_prem",
    ),
}


def scan(folder: Path) -> dict[str, list[str]]:
    """Return what checkov finds in a folder: `failed` and `skipped`, as `CHECK RESOURCE`."""
    done = subprocess.run(
        [
            *(checkov(), "--directory", folder, "--framework", "terraform"),
            *("--skip-download", "--compact", "--output", "json"),
        ],
        capture_output=True,
        text=True,
        timeout=240,
    )
    found = json.loads(done.stdout)
    results = found["results"]
    assert found["summary"]["parsing_errors"] == 0
    assert found["summary"]["passed"] > 40
    return {
        kind: [f"{item['check_id']} {item['resource']}" for item in results[f"{kind}_checks"]]
        for kind in ("failed", "skipped")
    }


@pytest.fixture(scope="module")
def unsafe(aws_module: Workspace, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what checkov finds in a copy with all mistakes."""
    folder = tmp_path_factory.mktemp("unsafe") / "copy"
    return scan(with_mistakes(aws_module, folder, UNSAFE).folder)["failed"]


@pytest.mark.parametrize("name", UNSAFE)
def test_checkov_finds(unsafe: list[str], name: str) -> None:
    assert any(found.startswith(UNSAFE[name].words) for found in unsafe), unsafe


def test_checkov_finds_nothing_in_the_module_that_is_not_explained_there() -> None:
    found = scan(TERRAFORM / "modules" / "aws")

    assert found["failed"] == []
    assert len(found["skipped"]) == 7
    for path in (TERRAFORM / "modules" / "aws").glob("*.tf"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "checkov:skip" in line:
                assert len(line.partition(":skip=")[2].partition(":")[2].split()) >= 5, line


# --- found by the policy simulator ------------------------------------------------------------

EC2 = "arn:aws:ec2:us-east-1:123456789012"
INSTANCE = f"{EC2}:instance/i-0123456789abcdef0"
OVERLY = {
    "a launcher that ends anything": (
        Mistake(
            "iam.tf",
            'Action    = "ec2:TerminateInstances"\n'
            '      Resource  = "${local.ec2}:instance/*"\n'
            "      Condition = local.rented",
            'Action    = "ec2:TerminateInstances"\n      Resource  = "${local.ec2}:instance/*"\n'
            "      Condition = { StringLike = "
            '{ "aws:ResourceTag/hybrid-cluster-name" = "*" } }',
            "ending an instance of another cluster",
        ),
        Question(
            "ec2:TerminateInstances", INSTANCE, {"aws:ResourceTag/hybrid-cluster-name": "other"}
        ),
    ),
    "a launcher that tags what is there": (
        Mistake(
            "iam.tf",
            'StringEquals = { "ec2:CreateAction" = '
            '["RunInstances", "CreateFleet", "CreateLaunchTemplate"] }',
            'StringEqualsIfExists = { "ec2:CreateAction" = ["RunInstances", "CreateFleet"] }',
            "our tag on an instance that is there",
        ),
        Question(
            "ec2:CreateTags",
            INSTANCE,
            {"aws:RequestTag/hybrid-cluster-name": "lab", "aws:TagKeys": ["hybrid-cluster-name"]},
        ),
    ),
    "a launcher that gives any role": (
        Mistake(
            "iam.tf",
            "Resource  = aws_iam_role.node.arn",
            'Resource  = "${local.arn}:iam::${local.account}:role/*"',
            "giving machines another role",
        ),
        Question(
            "iam:PassRole",
            "arn:aws:iam::123456789012:role/admin",
            {"iam:PassedToService": "ec2.amazonaws.com"},
        ),
    ),
    "nodes that read any bucket": (
        Mistake(
            "iam.tf",
            'Resource = "${local.bucket_arn}/*"',
            'Resource = "${local.arn}:s3:::*"',
            "another bucket",
        ),
        Question("s3:GetObject", "arn:aws:s3:::payroll/x"),
    ),
}
"""What -> the mistake, and a question that is then answered by yes."""


def test_the_policy_table_finds_each_policy_that_allows_too_much(
    aws_module: Workspace, emulator: AwsEmulator, tmp_path: Path
) -> None:
    questions = {name: question for name, (_, question) in OVERLY.items()}
    mistakes = {name: mistake for name, (mistake, _) in OVERLY.items()}
    moto_api_backend.reset()

    wrong = apply(with_mistakes(aws_module, tmp_path / "copy", mistakes), emulator, VARIABLES)
    answers = ask(wrong.policies, list(questions.values()))
    moto_api_backend.reset()

    # `test_aws_iam` has each of them denied by the module as it is.
    allowed = [any(pair) for pair in zip(*answers.is_allowed.values(), strict=True)]
    assert allowed == [True] * len(questions)


# --- bad input, by `terraform plan` -----------------------------------------------------------

POOL = {"instance_type": "g5.xlarge"}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "overlapping-cidrs": (
        {"on_prem_cidrs": ["10.64.3.0/24"]},
        "on_prem_cidrs and cidr_block (10.64.0.0/16) must not overlap: nothing could be routed "
        "between them.",
    ),
    "a-range-around-ours": (
        {"on_prem_cidrs": ["10.0.0.0/8"]},
        "on_prem_cidrs and cidr_block (10.64.0.0/16) must not overlap: nothing could be routed "
        "between them.",
    ),
    "the-internet": (
        {"on_prem_cidrs": ["0.0.0.0/0"]},
        "on_prem_cidrs must be your own networks, /8 or smaller; 0.0.0.0/0 would open the nodes "
        "to the internet.",
    ),
    "no-cidr": (
        {"on_prem_cidrs": ["192.168.0.5/24"]},
        "on_prem_cidrs must be ranges of IPv4 addresses that begin at their first address, such "
        "as 192.168.0.0/24.",
    ),
    "zone-outside-the-region": (
        {"availability_zones": ["eu-west-1a"], "pools": [POOL]},
        "availability_zones must all be zones of us-east-1, the region of this module's AWS "
        "provider; found eu-west-1a.",
    ),
    "no-zones": (
        {"availability_zones": [], "pools": [POOL]},
        'availability_zones must name at least one zone, such as ["us-east-1a"].',
    ),
    "a-pool-elsewhere": (
        {"pools": [{**POOL, "zone": "us-east-1f"}]},
        "pools must be in zones that have a subnet here: those of availability_zones, or of "
        "subnet_ids.",
    ),
    "no-pools": (
        {"pools": []},
        'pools must name at least one instance type, such as [{ instance_type = "g6.xlarge" }].',
    ),
    "the-same-pool-twice": (
        {"pools": [POOL, POOL]},
        "pools must differ in instance type, zone or market: two are the same.",
    ),
    "a-name-too-long": (
        {"name": "a" * 31},
        "name must be 3 to 30 lower-case letters, digits or hyphens, beginning with a letter and "
        "not ending with a hyphen.",
    ),
    "a-name-with-bad-characters": (
        {"name": "Team_A"},
        "name must be 3 to 30 lower-case letters, digits or hyphens, beginning with a letter and "
        "not ending with a hyphen.",
    ),
    "two-modules-with-one-name": (
        {"other_names": ["edge", "lab"]},
        "name is that of another network in this configuration too; give each module a name of "
        "its own, since the identities of an account share one list.",
    ),
    "a-budget-for-nobody": (
        {"monthly_budget_usd": 5},
        "budget_emails must name somebody when monthly_budget_usd is set.",
    ),
    "an-image-that-is-none": (
        {"image": "ubuntu"},
        "image must be an AMI such as ami-0123456789abcdef0, or ssm:/NAME/OF/PARAMETER.",
    ),
    "our-own-tag": (
        {"tags": {"hybrid-cluster": "x"}},
        "tags must have keys of 1 to 128 letters, digits or +-=.,_:@ that begin with neither "
        "aws: nor hybrid-, and values of up to 256 characters.",
    ),
    "a-network-both-made-and-given": (
        {"vpc_id": "vpc-0123456789abcdef0"},
        "vpc_id is for a network that exists; set create_vpc = false, or leave vpc_id out.",
    ),
    "a-vpn-to-nowhere": (
        {"vpn": {"address": "office"}},
        "vpn must have the public IPv4 address of your device, such as 203.0.113.10.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_plan_says_in_a_sentence_what_is_wrong(aws_module: Workspace, name: str) -> None:
    change, sentence = BAD[name]

    done = aws_module.plan({**VARIABLES, **change})

    told = [error.partition("\n")[0].partition(": ")[2] for error in done.errors()]
    assert done.code == 1
    assert sentence in told


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_REGION"])
def test_plan_says_what_of_the_account_is_missing(aws_module: Workspace, name: str) -> None:
    without = Workspace(
        aws_module.folder,
        aws_module.mirror,
        {key: value for key, value in CREDENTIALS.items() if key != name},
    )

    errors = without.plan(VARIABLES).errors()

    words = {
        "AWS_ACCESS_KEY_ID": "No valid credential sources found",
        "AWS_REGION": "AWS region is not set",
    }
    assert words[name] in errors[0]
