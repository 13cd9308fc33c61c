"""The AWS module's policies, judged by a policy simulator.

The questions are those that AWS asks about the calls that our adapter makes, with the settings
that the module gave it: recorded from the adapter at work, not written by hand.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from moto.moto_api._internal.models import moto_api_backend

from tests.emulators.aws import AwsEmulator
from tests.emulators.aws.controls import Call
from tests.providers.aws_cloud import set_environment
from tests.terraform.account import VARIABLES, apply, work
from tests.terraform.iam.questions import Asker
from tests.terraform.iam.simulator import Answers, Context, Question, ask
from tests.terraform.workspace import Workspace

pytestmark = pytest.mark.slow

REGION = "arn:aws:ec2:us-east-1:123456789012"
KEY = "arn:aws:kms:us-east-1:123456789012:key/0e8e2fd0-8c3b-4c4a-9d1f-5b7a3c2e1d00"


@dataclass(frozen=True)
class Made:
    """The module's policies, and what the adapter asked."""

    policies: Mapping[str, dict[str, Any]]
    bucket: str
    calls: Sequence[Call]
    questions: Sequence[Question]

    def find(self, action: str, kind: str) -> Question:
        """Return the first question about a kind of resource; `*` is any."""
        return next(
            q
            for q in self.questions
            if q.action == action and (kind == "*" or f":{kind}/" in q.resource)
        )


@pytest.fixture(scope="module")
def made(aws_module: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Apply the module, and let the adapter work in it."""
    emulator = AwsEmulator()
    with pytest.MonkeyPatch.context() as patch:
        set_environment(patch)
        try:
            workspace = aws_module.copy(Path(tmp_path_factory.mktemp("iam")) / "copy")
            applied = apply(workspace, emulator, VARIABLES | {"kms_key_arn": KEY})
            calls, tags = work(applied)
        finally:
            emulator.stop()
            moto_api_backend.reset()
    asker = Asker(tags, role="arn:aws:iam::123456789012:role/lab-node")
    found = {str(vars(q)): q for call in calls for q in asker.questions(_with_service(call))}
    # AWS answers it to anybody.
    questions = [q for q in found.values() if q.action != "sts:GetCallerIdentity"]
    return Made(applied.policies, applied.outputs["bucket"], calls, questions)


def _with_service(call: Call) -> Call:
    return dataclasses.replace(call, endpoint=call.endpoint or "ec2")


def test_the_adapter_made_every_kind_of_call(made: Made) -> None:
    assert {q.action for q in made.questions} == {
        "ec2:CreateFleet",
        "ec2:CreateLaunchTemplate",
        "ec2:CreateTags",
        "ec2:DeleteLaunchTemplate",
        "ec2:DescribeImages",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeInstances",
        "ec2:DescribeLaunchTemplates",
        "ec2:DescribeSpotPriceHistory",
        "ec2:RunInstances",
        "ec2:TerminateInstances",
        "iam:PassRole",
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:GenerateDataKeyWithoutPlaintext",
        "pricing:GetProducts",
        "ssm:GetParameter",
    }


def test_the_launcher_may_make_every_call_of_the_adapter(made: Made) -> None:
    answers = ask({"launcher": made.policies["launcher"]}, made.questions)

    allowed = answers.is_allowed["launcher"]
    denied = [str(q) for q, yes in zip(made.questions, allowed, strict=True) if not yes]
    assert denied == []
    assert len(made.questions) > 40


def test_nothing_of_the_launchers_policy_is_unused(made: Made) -> None:
    """Without any one of its statements, actions or resources some call is denied."""
    shorter = list(_shortened(made.policies["launcher"]))
    # What is left out says nothing about other actions.
    chosen = {
        name: [place for place, q in enumerate(made.questions) if q.action in actions]
        for name, actions, _ in shorter
    }

    answers = ask({name: policy for name, _, policy in shorter}, made.questions, chosen)

    assert [name for name, allowed in answers.is_allowed.items() if all(allowed)] == []
    assert len(shorter) == len(answers.is_allowed) > 30


# Allowed with an image from a snapshot of its own alone, which EC2 checks only where there is one.
_UNASKED = ("snapshot/*",)


def _shortened(
    policy: Mapping[str, Any],
) -> Iterator[tuple[str, Collection[str], dict[str, Any]]]:
    """Yield the policy without one of its parts, with the part's name and its actions."""
    statements = policy["Statement"]
    for index, statement in enumerate(statements):
        others = [*statements[:index], *statements[index + 1 :]]
        actions = _several(statement["Action"])
        yield statement["Sid"], actions, {**policy, "Statement": others}
        for key in ("Action", "Resource"):
            values = _several(statement[key])
            for value in values if len(values) > 1 else []:
                if value.endswith(_UNASKED):
                    continue
                rest = {**statement, key: [item for item in values if item != value]}
                shorter = {**policy, "Statement": [*others, rest]}
                yield f"{statement['Sid']} without {value}", actions, shorter


def _several(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]


DENIED = {
    "a launch for another cluster": ("ec2:RunInstances", "instance", {"name": "other"}),
    "a launch without the name of a cluster": ("ec2:RunInstances", "instance", {"name": None}),
    "a launch without an id of ours": ("ec2:RunInstances", "instance", {"id": None}),
    "a type that no pool names": (
        "ec2:RunInstances",
        "instance",
        {"ec2:InstanceType": "p5.48xlarge"},
    ),
    "a machine that answers IMDSv1": (
        "ec2:RunInstances",
        "instance",
        {"ec2:MetadataHttpTokens": "optional"},
    ),
    "a tag that is not ours": ("ec2:RunInstances", "instance", {"aws:TagKeys": ["Name", "role"]}),
    "a volume in the clear": ("ec2:RunInstances", "volume", {"ec2:Encrypted": "false"}),
    "a larger volume": ("ec2:RunInstances", "volume", {"ec2:VolumeSize": "101"}),
    "somebody else's subnet": ("ec2:RunInstances", "subnet", "subnet/subnet-0aaaaaaaaaaaaaaaa"),
    "somebody else's security group": (
        "ec2:RunInstances",
        "security-group",
        "security-group/sg-0aaaaaaaaaaaaaaaa",
    ),
    "a fleet for another cluster": ("ec2:CreateFleet", "fleet", {"name": "other"}),
    "a fleet from somebody else's template": (
        "ec2:CreateFleet",
        "launch-template",
        {"aws:ResourceTag/hybrid-cluster-name": "other"},
    ),
    "a template for another cluster": (
        "ec2:CreateLaunchTemplate",
        "launch-template",
        {"name": "other"},
    ),
    "removing a template of another cluster": (
        "ec2:DeleteLaunchTemplate",
        "launch-template",
        {"aws:ResourceTag/hybrid-cluster-name": "other"},
    ),
    "removing a template that hybrid did not make": (
        "ec2:DeleteLaunchTemplate",
        "launch-template",
        {"aws:ResourceTag/hybrid-template": None},
    ),
    "ending an instance of another cluster": (
        "ec2:TerminateInstances",
        "instance",
        {"aws:ResourceTag/hybrid-cluster-name": "other"},
    ),
    "ending an instance without our tags": (
        "ec2:TerminateInstances",
        "instance",
        {"aws:ResourceTag/hybrid-cluster-name": None},
    ),
    "ending the head, or a machine started by hand": (
        "ec2:TerminateInstances",
        "instance",
        {"aws:ResourceTag/hybrid-instance": None},
    ),
    "a fleet from a template that hybrid did not make": (
        "ec2:CreateFleet",
        "launch-template",
        {"aws:ResourceTag/hybrid-template": None},
    ),
    "giving machines another role": (
        "iam:PassRole",
        "*",
        "arn:aws:iam::123456789012:role/admin",
    ),
    "giving the role to another service": (
        "iam:PassRole",
        "*",
        {"iam:PassedToService": "lambda.amazonaws.com"},
    ),
    "looking into another region": (
        "ec2:DescribeInstances",
        "*",
        {"aws:RequestedRegion": "eu-west-1"},
    ),
    "another key": (
        "kms:CreateGrant",
        "*",
        "arn:aws:kms:us-east-1:123456789012:key/11111111-8c3b-4c4a-9d1f-5b7a3c2e1d00",
    ),
    "the key for another service": (
        "kms:Decrypt",
        "*",
        {"kms:ViaService": "s3.us-east-1.amazonaws.com"},
    ),
    "another parameter": (
        "ssm:GetParameter",
        "*",
        "arn:aws:ssm:us-east-1:123456789012:parameter/secret",
    ),
}
"""What -> the question of the adapter that it is like, and what is different."""

_SHORT = {
    "name": "aws:RequestTag/hybrid-cluster-name",
    "id": "aws:RequestTag/hybrid-instance",
}


def _other(made: Made, like: tuple[str, str, Any]) -> Question:
    action, kind, change = like
    question = made.find(action, kind)
    if isinstance(change, str):
        resource = change if change.startswith("arn:") else f"{REGION}:{change}"
        return question.but(resource=resource)
    return question.but({_SHORT.get(key, key): value for key, value in change.items()})


def _renewal(made: Made) -> Question:
    return next(
        q
        for q in made.questions
        if q.action == "ec2:CreateTags" and "ec2:CreateAction" not in q.context
    )


@pytest.fixture(scope="module")
def refusals(made: Made) -> Mapping[str, bool]:
    """Return whether each call that must be denied is allowed: all asked at once."""
    renewal = _renewal(made)
    asked = {name: _other(made, like) for name, like in DENIED.items()} | {
        "another tag on an instance of ours": renewal.but(
            {
                "aws:TagKeys": ["hybrid-cluster-name"],
                "aws:RequestTag/hybrid-cluster-name": "x",
                "aws:RequestTag/hybrid-expires-at": None,
            }
        ),
        "a lease of another cluster's instance": renewal.but(
            {"aws:ResourceTag/hybrid-cluster-name": "other"}
        ),
        "a lease of a machine started by hand": renewal.but(
            {"aws:ResourceTag/hybrid-instance": None}
        ),
        "our tag on an instance that is there": Question(
            "ec2:CreateTags",
            f"{REGION}:instance/i-0123456789abcdef0",
            {"aws:RequestTag/hybrid-cluster-name": "lab", "aws:TagKeys": ["hybrid-cluster-name"]},
        ),
        "stopping instances": Question(
            "ec2:StopInstances",
            f"{REGION}:instance/i-0123456789abcdef0",
            {"aws:ResourceTag/hybrid-cluster-name": "lab"},
        ),
        "opening the security group": Question(
            "ec2:AuthorizeSecurityGroupIngress",
            made.find("ec2:RunInstances", "security-group").resource,
        ),
        "a new user": Question("iam:CreateUser", "arn:aws:iam::123456789012:user/x"),
        "the launcher reading data": Question("s3:GetObject", f"arn:aws:s3:::{made.bucket}/x"),
    }
    answers = ask({"launcher": made.policies["launcher"]}, list(asked.values()))
    return dict(zip(asked, answers.is_allowed["launcher"], strict=True))


MORE = (
    "another tag on an instance of ours",
    "a lease of another cluster's instance",
    "a lease of a machine started by hand",
    "our tag on an instance that is there",
    "stopping instances",
    "opening the security group",
    "a new user",
    "the launcher reading data",
)


@pytest.mark.parametrize("what", [*DENIED, *MORE])
def test_the_launcher_may_not(refusals: Mapping[str, bool], what: str) -> None:
    assert refusals[what] is False
    assert set(refusals) == {*DENIED, *MORE}


@pytest.mark.parametrize("policy", ["node", "data"])
def test_nodes_and_jobs_may_use_the_one_bucket_and_no_other(made: Made, policy: str) -> None:
    through: Context = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}
    own, other = f"arn:aws:s3:::{made.bucket}", "arn:aws:s3:::payroll"
    objects = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
    allowed = [
        *(Question(f"s3:{name}", own) for name in ("ListBucket", "GetBucketLocation")),
        *(Question(name, f"{own}/checkpoints/1") for name in objects),
        *(Question(f"kms:{name}", KEY, through) for name in ("Decrypt", "GenerateDataKey")),
    ]
    denied = [
        Question("s3:ListBucket", other),
        *(Question(name, f"{other}/x") for name in objects),
        Question("s3:DeleteBucket", own),
        Question("s3:PutBucketPolicy", own),
        Question("s3:DeleteObjectVersion", f"{own}/checkpoints/1"),
        Question("ec2:DescribeInstances", "*"),
        Question("kms:Decrypt", KEY, {"kms:ViaService": "ec2.us-east-1.amazonaws.com"}),
        Question("iam:PassRole", "arn:aws:iam::123456789012:role/lab-node"),
    ]

    answers = ask(made.policies, [*allowed, *denied])

    expected = [True] * len(allowed) + [False] * len(denied)
    assert list(answers.is_allowed[policy]) == expected


def test_no_policy_has_a_word_that_aws_does_not(made: Made) -> None:
    answers = ask(made.policies, [])

    assert answers.unknown == {"node": [], "data": [], "launcher": []}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"Action": "ec2:LaunchInstances"}, "ec2:LaunchInstances"),
        ({"Condition": {"StringEquals": {"ec2:InstanceKind": "x"}}}, "Odd: ec2:InstanceKind"),
    ],
    ids=["action", "condition-key"],
)
def test_an_unknown_word_is_found(change: dict[str, Any], word: str) -> None:
    statement = {"Sid": "Odd", "Effect": "Allow", "Action": "ec2:RunInstances", "Resource": "*"}

    answers: Answers = ask({"x": {"Version": "2012-10-17", "Statement": [statement | change]}}, [])

    assert answers.unknown["x"] == [word]


def test_the_launchers_policy_fits_into_what_aws_takes(made: Made) -> None:
    assert len(json.dumps(made.policies["launcher"], separators=(",", ":"))) < 6144
