"""The module of Baidu AI Cloud: what must be true of any plan, and how people break it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.terraform.clouds.planned import Law, Mistake, Planned

KEYS = {"BAIDUCLOUD_ACCESS_KEY": "an-access-key", "BAIDUCLOUD_SECRET_KEY": "a-secret-key"}
GIVEN: Mapping[str, Any] = {
    "name": "burst",
    "region": "bj",
    "zones": ["cn-bj-d", "cn-bj-f"],
    "pools": [
        {
            "instance_type": "bcc.lgn1.c12m40.1p40",
            "zone": "cn-bj-d",
            "use_spot": True,
            "cny_per_hour": 4.2,
            "max_nodes": 4,
        },
        {"instance_type": "bcc.lgn1.c12m40.1p40", "usd_per_hour": 1.6},
    ],
    "exchange": {"cny_per_usd": 7.08, "as_of": "2026-11-27", "source": "an example"},
    "image": "m-AbCd1234",
    "on_prem_cidrs": ["192.168.0.0/24"],
    "vpn": {"address": "203.0.113.10"},
    "vpn_secret": "a secret of twenty characters",
    "ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExample me",
    "launcher_pgp_key": "keybase:somebody",
    "expire_checkpoints_after_days": 30,
    "tags": {"team": "ml"},
}
"""All that the module can make, in one plan."""


def _rules(plan: Planned, direction: str) -> list[Mapping[str, Any]]:
    rules = plan.of_type("baiducloud_security_group_rule")
    return [rule for rule in rules if rule["direction"] == direction]


def _grants(plan: Planned, policy: str) -> list[Mapping[str, Any]]:
    found = [p for p in plan.of_type("baiducloud_iam_policy") if p["name"] == f"burst-{policy}"]
    document = json.loads(found[0]["document"])
    grants: list[Mapping[str, Any]] = document["accessControlList"]
    return grants


LAWS: Mapping[str, Law] = {
    "no way in from the internet": lambda plan: all(
        rule.get("source_ip") in (None, "192.168.0.0/24") for rule in _rules(plan, "ingress")
    ),
    "a node offers no port of the system": lambda plan: all(
        int(rule["port_range"].split("-")[0]) >= 1024
        for rule in _rules(plan, "ingress")
        if rule.get("source_ip")
    ),
    "to the internet goes TLS only": lambda plan: all(
        (rule["protocol"], rule["port_range"]) == ("tcp", "443")
        for rule in _rules(plan, "egress")
        if rule.get("dest_ip") == "all"
    ),
    "the bucket is private": lambda plan: all(
        b["acl"] == "private" for b in plan.of_type("baiducloud_bos_bucket")
    ),
    "the bucket is encrypted": lambda plan: all(
        b["server_side_encryption_rule"] == "AES256" for b in plan.of_type("baiducloud_bos_bucket")
    ),
    "old versions are kept": lambda plan: all(
        b["versioning_status"] == "enabled" for b in plan.of_type("baiducloud_bos_bucket")
    ),
    "a destroy empties no bucket": lambda plan: (
        not any(b["force_destroy"] for b in plan.of_type("baiducloud_bos_bucket"))
    ),
    "only checkpoints expire": lambda plan: all(
        rule["resource"] == ["burst-bj-data/checkpoints/*"]
        for b in plan.of_type("baiducloud_bos_bucket")
        for rule in b["lifecycle_rule"]
    ),
    "the launcher has BCC and nothing else": lambda plan: (
        [grant["service"] for grant in _grants(plan, "launcher")] == ["bcc"]
    ),
    "the launcher has this region only": lambda plan: (
        [grant["region"] for grant in _grants(plan, "launcher")] == ["bj"]
    ),
    "data is this bucket's": lambda plan: (
        [resource for grant in _grants(plan, "data") for resource in grant["resource"]]
        == ["burst-bj-data", "burst-bj-data/*"]
    ),
    "no access key is in the state in the clear": lambda plan: all(
        key.get("pgp_key") and not key.get("secret_file")
        for key in plan.of_type("baiducloud_iam_access_key")
    ),
    "subnets do not overlap": lambda plan: (
        sorted(s["cidr"] for s in plan.of_type("baiducloud_subnet"))
        == ["10.80.16.0/20", "10.80.32.0/20"]
    ),
    "the way out costs by traffic": lambda plan: all(
        (e["payment_timing"], e["billing_method"]) == ("Postpaid", "ByTraffic")
        for e in plan.of_type("baiducloud_eip")
    ),
    "the VPN negotiates strong keys": lambda plan: all(
        (c["ike_version"], c["ike_enc_alg"]) == ("v2", "aes256")
        for connection in plan.of_type("baiducloud_vpn_conn")
        for c in connection["ike_config"]
    ),
    "every object is marked": lambda plan: all(
        v["tags"] == {"team": "ml", "hybrid-cluster-name": "burst", "managed-by": "terraform"}
        for v in plan.of_type("baiducloud_security_group")
    ),
}

BREAKING: tuple[Mistake, ...] = (
    Mistake(
        "network.tf",
        "source_ip         = each.value.cidr",
        'source_ip         = "all"',
        "no way in from the internet",
    ),
    Mistake(
        "variables.tf",
        "[{ from = 1024, to = 65535 }]",
        "[{ from = 1, to = 65535 }]",
        "a node offers no port of the system",
    ),
    Mistake(
        "network.tf",
        "port_range        = each.value\n",
        'port_range        = "1-65535"\n',
        "to the internet goes TLS only",
    ),
    Mistake("storage.tf", '"private"', '"public-read"', "the bucket is private"),
    Mistake(
        "storage.tf",
        '  server_side_encryption_rule = "AES256"\n',
        '  server_side_encryption_rule = "NONE"\n',
        "the bucket is encrypted",
    ),
    Mistake(
        "storage.tf",
        'versioning_status           = "enabled"',
        'versioning_status           = "suspended"',
        "old versions are kept",
    ),
    Mistake(
        "storage.tf",
        "force_destroy               = false",
        "force_destroy               = true",
        "a destroy empties no bucket",
    ),
    Mistake("storage.tf", "/checkpoints/*", "/*", "only checkpoints expire"),
    Mistake(
        "iam.tf",
        'region     = var.region\n      service    = "bcc"',
        'region     = "*"\n      service    = "bcc"',
        "the launcher has this region only",
    ),
    Mistake("iam.tf", '"bcc"', '"*"', "the launcher has BCC and nothing else"),
    Mistake(
        "iam.tf",
        '[local.bucket, "${local.bucket}/*"]',
        '["*"]',
        "data is this bucket's",
    ),
    Mistake(
        "iam.tf",
        "  pgp_key  = var.launcher_pgp_key\n",
        "",
        "no access key is in the state in the clear",
    ),
    Mistake("network.tf", "each.value + 1)", "each.value)", "subnets do not overlap"),
    Mistake("network.tf", '"ByTraffic"', '"ByBandwidth"', "the way out costs by traffic"),
    Mistake(
        "vpn.tf",
        'ike_enc_alg   = "aes256"',
        'ike_enc_alg   = "3des"',
        "the VPN negotiates strong keys",
    ),
    Mistake(
        "network.tf",
        "vpc_id      = local.vpc_id\n  tags        = local.tags",
        "vpc_id      = local.vpc_id",
        "every object is marked",
    ),
)

INVALID: tuple[Mistake, ...] = (
    Mistake(
        "network.tf",
        '  name              = "${var.name}-nat"',
        '  label             = "${var.name}-nat"',
        r'"label" is not expected',
    ),
    Mistake("network.tf", '  spec    = "small"\n', "  spec    = {}\n", r'"spec": string required'),
    Mistake("iam.tf", "  policy_type = ", "  kind = ", r'"kind" is not expected'),
    Mistake(
        "vpn.tf",
        "  secret_key     = var.vpn_secret\n",
        "",
        r'"secret_key" is required',
    ),
    Mistake(
        "launch.tf",
        "public_key  = var.ssh_public_key",
        "public_key  = var.ssh_key",
        r'input variable with the name "ssh_key"',
    ),
    Mistake(
        "storage.tf",
        '  acl                         = "private"\n',
        '  acl                         = "private"\n  creation_date = "now"\n',
        r'"creation_date"|creation_date: its value is decided',
    ),
)
