"""What AWS asks IAM about a call, from the call itself: each resource with its condition keys.

By the service authorization reference of EC2:
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tests.emulators.aws.controls import Call
from tests.terraform.iam.simulator import Context, Question

ACCOUNT = "123456789012"
Tags = Mapping[str, str]

# What EC2 does with a key in the launcher's name.
_OF_A_KEY = ("CreateGrant", "Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext")
_DATA = "LaunchTemplateData."


class Asker:
    """Turns calls into questions. It learns launch templates as they are made.

    Args:
        instance_tags: Tags of each instance that is there, by id.
        role: ARN of the role that instances get.
    """

    def __init__(self, instance_tags: Mapping[str, Tags], role: str) -> None:
        self._instance_tags = instance_tags
        self._role = role
        self._templates: dict[str, Call] = {}

    def questions(self, call: Call) -> Iterator[Question]:
        """Yield the questions of one call."""
        for question in self._by_action(call):
            yield Question(
                question.action,
                question.resource,
                {**question.context, "aws:RequestedRegion": call.region},
            )

    def _by_action(self, call: Call) -> Iterator[Question]:
        name = f"{call.endpoint}:{call.action}"
        match call.action:
            case "RunInstances":
                yield from self._run(call, call.params, tags_by_kind(call.params))
            case "CreateFleet":
                yield from self._fleet(call)
            case "CreateLaunchTemplate":
                self._templates[call.params["LaunchTemplateName"]] = call
                tags = tags_by_kind(call.params)["launch-template"]
                made = Question(name, arn(call, "launch-template/*"), requested(tags))
                yield from (made, *_tagging(call, {"launch-template": tags}))
            case "DeleteLaunchTemplate":
                tags = self._template_tags(call.params["LaunchTemplateName"])
                yield Question(name, arn(call, "launch-template/lt-0123456789abcdef0"), has(tags))
            case "TerminateInstances" | "CreateTags":
                keys = ("InstanceId", "ResourceId")
                for item in (v for k, v in call.params.items() if k.partition(".")[0] in keys):
                    given = requested(_pairs(call.params, "Tag."))
                    context = {**has(self._instance_tags[item]), **given}
                    yield Question(name, arn(call, f"instance/{item}"), context)
            case "GetParameter":
                yield Question(name, f"arn:aws:ssm:{call.region}:{ACCOUNT}:parameter/ml/ami")
            case _:
                yield Question(name, "*")

    def _run(
        self, call: Call, made_of: Mapping[str, str], tags: Mapping[str, Tags], prefix: str = ""
    ) -> Iterator[Question]:
        """Yield the questions of a launch: `made_of` has the machine under `prefix`."""

        def of(name: str) -> str:
            return made_of.get(prefix + name, "")

        run = "ec2:RunInstances"
        context: Context = {
            "ec2:InstanceType": of("InstanceType"),
            "ec2:MetadataHttpTokens": of("MetadataOptions.HttpTokens"),
        }
        yield Question(run, arn(call, "instance/*"), {**requested(tags["instance"]), **context})
        disk: Context = {
            "ec2:Encrypted": of("BlockDeviceMapping.1.Ebs.Encrypted"),
            "ec2:VolumeSize": of("BlockDeviceMapping.1.Ebs.VolumeSize"),
        }
        yield Question(run, arn(call, "volume/*"), {**requested(tags["volume"]), **disk})
        if key := of("BlockDeviceMapping.1.Ebs.KmsKeyId"):
            through: Context = {"kms:ViaService": f"ec2.{call.region}.amazonaws.com"}
            for action in _OF_A_KEY:
                yield Question(f"kms:{action}", key, through)
        card = requested(tags["network-interface"])
        yield Question(run, arn(call, "network-interface/*"), card)
        yield Question(run, f"arn:aws:ec2:{call.region}::image/{of('ImageId')}")
        yield Question(run, arn(call, f"security-group/{of('SecurityGroupId.1')}"))
        for subnet in sorted({v for k, v in call.params.items() if k.endswith("SubnetId")}):
            yield Question(run, arn(call, f"subnet/{subnet}"))
        if "spot-instances-request" in tags:
            spot = requested(tags["spot-instances-request"])
            yield Question(run, arn(call, "spot-instances-request/*"), spot)
        if of("IamInstanceProfile.Name"):
            service: Context = {"iam:PassedToService": "ec2.amazonaws.com"}
            yield Question("iam:PassRole", self._role, service)
        yield from _tagging(call, tags)

    def _fleet(self, call: Call) -> Iterator[Question]:
        name = next(v for k, v in call.params.items() if k.endswith(".LaunchTemplateName"))
        tags, fleet = tags_by_kind(call.params), "ec2:CreateFleet"
        template = arn(call, "launch-template/lt-0123456789abcdef0")
        for kind in ("fleet", "instance", "volume"):
            yield Question(fleet, arn(call, f"{kind}/*"), requested(tags[kind]))
        for action in (fleet, "ec2:RunInstances"):
            yield Question(action, template, has(self._template_tags(name)))
        for subnet in sorted({v for k, v in call.params.items() if k.endswith("SubnetId")}):
            yield Question(fleet, arn(call, f"subnet/{subnet}"))
        launched = {kind: own for kind, own in tags.items() if kind != "fleet"}
        yield from self._run(call, self._templates[name].params, launched, _DATA)
        yield from _tagging(call, {"fleet": tags["fleet"]})

    def _template_tags(self, name: str) -> Tags:
        return tags_by_kind(self._templates[name].params)["launch-template"]


def arn(call: Call, rest: str) -> str:
    """Return the ARN of something of EC2 where a call went."""
    return f"arn:aws:ec2:{call.region}:{ACCOUNT}:{rest}"


def requested(tags: Tags) -> Context:
    """Return the condition keys of tags that a call brings."""
    if not tags:
        return {}
    named: Context = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    return {**named, "aws:TagKeys": list(tags)}


def has(tags: Tags) -> Context:
    """Return the condition keys of tags that a thing has."""
    return {f"aws:ResourceTag/{key}": value for key, value in tags.items()}


def tags_by_kind(params: Mapping[str, str]) -> dict[str, Tags]:
    """Return the tags that a call brings, by the kind of what gets them."""
    kinds = {
        k: v for k, v in params.items() if re.fullmatch(r"TagSpecification\.\d+\.ResourceType", k)
    }
    return {
        kind: _pairs(params, key.removesuffix("ResourceType") + "Tag.")
        for key, kind in kinds.items()
    }


def _pairs(params: Mapping[str, str], stem: str) -> dict[str, str]:
    keys = {k: v for k, v in params.items() if k.startswith(stem) and k.endswith(".Key")}
    return {value: params[f"{key.removesuffix('Key')}Value"] for key, value in keys.items()}


def _tagging(call: Call, tags: Mapping[str, Tags]) -> Iterator[Question]:
    for kind, own in tags.items():
        context = {**requested(own), "ec2:CreateAction": call.action}
        yield Question("ec2:CreateTags", arn(call, f"{kind}/*"), context)
