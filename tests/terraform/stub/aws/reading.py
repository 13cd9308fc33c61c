"""What the AWS stub's data sources show."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.terraform.stub.aws.cloud import ACCOUNT, Cloud, Values, one, tags_read


def _identity(cloud: Cloud, config: Values) -> dict[str, Any]:
    me = cloud.sts.get_caller_identity()
    return {"account_id": me["Account"], "arn": me["Arn"], "user_id": me["UserId"]}


def _vpc(cloud: Cloud, config: Values) -> dict[str, Any] | None:
    found = cloud.found(lambda: cloud.ec2.describe_vpcs(VpcIds=[config["id"]]))
    item = one((found or {}).get("Vpcs"))
    return item and {"id": item["VpcId"], "cidr_block": item["CidrBlock"]}


def _subnet(cloud: Cloud, config: Values) -> dict[str, Any] | None:
    found = cloud.found(lambda: cloud.ec2.describe_subnets(SubnetIds=[config["id"]]))
    item = one((found or {}).get("Subnets"))
    return item and {
        "id": item["SubnetId"],
        "arn": cloud.arn("subnet", item["SubnetId"]),
        "vpc_id": item["VpcId"],
        "cidr_block": item["CidrBlock"],
        "availability_zone": item["AvailabilityZone"],
        "map_public_ip_on_launch": item["MapPublicIpOnLaunch"],
    }


def _roles(cloud: Cloud, config: Values) -> dict[str, Any]:
    roles = cloud.iam.list_roles()["Roles"]
    named = [role for role in roles if re.search(config["name_regex"] or "", role["RoleName"])]
    return {"names": [r["RoleName"] for r in named], "arns": [r["Arn"] for r in named]}


def _role(cloud: Cloud, config: Values) -> dict[str, Any] | None:
    found = cloud.found(lambda: cloud.iam.get_role(RoleName=config["name"]))
    if found is None:
        return None
    role = found["Role"]
    return {"id": role["RoleName"], "arn": role["Arn"], "tags": tags_read(role)["tags_all"]}


def _region(region: str) -> dict[str, Any]:
    return {"region": region, "name": region, "id": region}


_PARTITION = {"partition": "aws", "id": "aws", "dns_suffix": "amazonaws.com"}

DATA: Mapping[str, Callable[[Cloud, Values], dict[str, Any] | None]] = {
    "aws_caller_identity": _identity,
    "aws_iam_role": _role,
    "aws_iam_roles": _roles,
    "aws_partition": lambda cloud, config: _PARTITION,
    "aws_region": lambda cloud, config: _region(cloud.region),
    "aws_subnet": _subnet,
    "aws_vpc": _vpc,
}
"""From the emulator."""

OFFLINE: Mapping[str, Callable[[str, Values], dict[str, Any]]] = {
    "aws_caller_identity": lambda region, config: {"account_id": ACCOUNT},
    "aws_partition": lambda region, config: _PARTITION,
    "aws_region": lambda region, config: _region(region),
    "aws_vpc": lambda region, config: {"cidr_block": "10.8.0.0/16"},
    "aws_subnet": lambda region, config: {
        "vpc_id": "vpc-0123456789abcdef0",
        "availability_zone": f"{region}a",
    },
}
"""Made up."""
