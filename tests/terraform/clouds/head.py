"""The module of a head in AWS: what must be true of any plan, and how people break it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.terraform.clouds.planned import Law, Mistake, Planned

KEYS = {
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "an-access-key",
    "AWS_SECRET_ACCESS_KEY": "a-secret-key",
}
CONFIG = """\
name: burst
head:
  cpus: 0
onprem:
  hosts:
    - name: onprem-1
      address: ops@192.168.0.7
budget:
  nodes: 4
"""
PROVIDER: Mapping[str, Any] = {
    "provider": "aws",
    "regions": {
        "us-east-1": {
            "image": "ami-0123456789abcdef0",
            "subnets": {"us-east-1a": "subnet-0123456789abcdef0"},
            "security_groups": ["sg-0123456789abcdef0"],
        }
    },
    "pools": [{"infra": "aws/us-east-1/us-east-1a", "instance_type": "g5.xlarge"}],
}
GIVEN: Mapping[str, Any] = {
    "name": "burst",
    "config": CONFIG,
    "hybrid_providers": {"aws": PROVIDER},
    "image": "ami-0123456789abcdef0",
    "vpc_id": "vpc-0123456789abcdef0",
    "subnet_id": "subnet-0123456789abcdef0",
    "availability_zone": "us-east-1a",
    "node_security_group_id": "sg-0123456789abcdef0",
    "launcher_policy_arn": "arn:aws:iam::123456789012:policy/burst-launcher",
    "on_prem_cidrs": ["192.168.0.0/24"],
    "ledger_parameter": "/hybrid/burst/ledger",
    "kms_key_arn": "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d",
    "tags": {"team": "ml"},
}
"""All that the module can make, in one plan."""


def _machine(plan: Planned) -> Mapping[str, Any]:
    return plan.of_type("aws_instance")[0]


def _readable(plan: Planned) -> list[str]:
    policy = json.loads(plan.of_type("aws_iam_role_policy")[0]["policy"])
    resources: list[str] = policy["Statement"][0]["Resource"]
    return [resource.rpartition(":")[2] for resource in resources]


LAWS: Mapping[str, Law] = {
    "no way in from the internet": lambda plan: all(
        rule.get("cidr_ipv4") in (None, "192.168.0.0/24")
        for rule in plan.of_type("aws_vpc_security_group_ingress_rule")
    ),
    "no way in below port 1024": lambda plan: all(
        rule["from_port"] >= 1024 for rule in plan.of_type("aws_vpc_security_group_ingress_rule")
    ),
    "to the internet goes TLS only": lambda plan: all(
        (rule["from_port"], rule["to_port"]) == (443, 443)
        for rule in plan.of_type("aws_vpc_security_group_egress_rule")
        if rule.get("cidr_ipv4") == "0.0.0.0/0"
    ),
    "the metadata service wants a token": lambda plan: all(
        item["http_tokens"] == "required" for item in _machine(plan)["metadata_options"]
    ),
    "containers on the head get no credentials": lambda plan: all(
        item["http_put_response_hop_limit"] == 1 for item in _machine(plan)["metadata_options"]
    ),
    "the system's volume is encrypted": lambda plan: all(
        item["encrypted"] for item in _machine(plan)["root_block_device"]
    ),
    "the ledger's volume is encrypted": lambda plan: plan.of_type("aws_ebs_volume")[0]["encrypted"],
    "a destroy leaves a copy of the ledger": lambda plan: plan.of_type("aws_ebs_volume")[0][
        "final_snapshot"
    ],
    "nobody ends the head by accident": lambda plan: _machine(plan)["disable_api_termination"],
    "a shutdown keeps the machine": lambda plan: (
        _machine(plan)["instance_initiated_shutdown_behavior"] == "stop"
    ),
    "no SSH key": lambda plan: not _machine(plan).get("key_name"),
    "the head reads its own parameters": lambda plan: (
        _readable(plan) == ["parameter/hybrid/burst/head/*", "parameter/hybrid/burst/ledger"]
    ),
    "the launcher's policy and Session Manager's, and no other": lambda plan: (
        sorted(
            item["policy_arn"].rpartition("/")[2]
            for item in plan.of_type("aws_iam_role_policy_attachment")
        )
        == ["AmazonSSMManagedInstanceCore", "burst-launcher"]
    ),
    "only machines take the role": lambda plan: all(
        json.loads(role["assume_role_policy"])["Statement"][0]["Principal"]
        == {"Service": "ec2.amazonaws.com"}
        for role in plan.of_type("aws_iam_role")
    ),
    "the given key is on the ledger": lambda plan: (
        plan.of_type("aws_ebs_volume")[0].get("kms_key_id") == GIVEN["kms_key_arn"]
    ),
}

BREAKING: tuple[Mistake, ...] = (
    Mistake(
        "network.tf",
        "  to_port           = var.head_ports.to\n  cidr_ipv4         = each.value",
        '  to_port           = var.head_ports.to\n  cidr_ipv4         = "0.0.0.0/0"',
        "no way in from the internet",
    ),
    Mistake(
        "network.tf",
        '  description                  = "Nodes"\n  ip_protocol                  = "tcp"\n'
        "  from_port                    = var.head_ports.from",
        '  description                  = "Nodes"\n  ip_protocol                  = "tcp"\n'
        "  from_port                    = 22",
        "no way in below port 1024",
    ),
    Mistake(
        "network.tf",
        "from_port         = 443",
        "from_port         = 0",
        "to the internet goes TLS only",
    ),
    Mistake("launch.tf", '"required"', '"optional"', "the metadata service wants a token"),
    Mistake(
        "launch.tf",
        "hop_limit = 1",
        "hop_limit = 2",
        "containers on the head get no credentials",
    ),
    Mistake(
        "launch.tf",
        "encrypted             = true",
        "encrypted             = false",
        "the system's volume is encrypted",
    ),
    Mistake(
        "storage.tf",
        "encrypted         = true",
        "encrypted         = false",
        "the ledger's volume is encrypted",
    ),
    Mistake(
        "storage.tf",
        "final_snapshot    = true",
        "final_snapshot    = false",
        "a destroy leaves a copy of the ledger",
    ),
    Mistake("launch.tf", "= var.protect", "= false", "nobody ends the head by accident"),
    Mistake("launch.tf", '= "stop"', '= "terminate"', "a shutdown keeps the machine"),
    Mistake(
        "launch.tf",
        "  ebs_optimized  ",
        '  key_name = "mine"\n  ebs_optimized  ',
        "no SSH key",
    ),
    Mistake("iam.tf", "/hybrid/${var.name}/head/*", "/*", "the head reads its own parameters"),
    Mistake(
        "iam.tf",
        "AmazonSSMManagedInstanceCore",
        "AdministratorAccess",
        "the launcher's policy and Session Manager's, and no other",
    ),
    Mistake(
        "iam.tf",
        '{ Service = "ec2.amazonaws.com" }',
        '{ AWS = "*" }',
        "only machines take the role",
    ),
    Mistake(
        "storage.tf",
        "  kms_key_id        = var.kms_key_arn\n",
        "",
        "the given key is on the ledger",
    ),
)

INVALID: tuple[Mistake, ...] = (
    Mistake("launch.tf", "  ami  ", "  image  ", r'"image" is not expected'),
    Mistake(
        "storage.tf",
        '  name        = "/hybrid/${var.name}/head/outputs.json"\n',
        "",
        r'"name" is required',
    ),
    Mistake(
        "network.tf",
        "from_port         = 443",
        'from_port         = "https"',
        r"a number is required",
    ),
    Mistake("outputs.tf", "aws_ebs_volume.state.id", "aws_ebs_volume.data.id", r'"data" has not'),
    Mistake(
        "iam.tf",
        '  name = "parameters"\n',
        '  name = "parameters"\n  tags = local.tags\n',
        r'"tags" is not expected',
    ),
    Mistake("launch.tf", "primary_network_interface {", "network {", r'"network" are not expected'),
)
