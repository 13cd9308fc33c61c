"""The module of Google Cloud: what must be true of any plan, and how people break it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.terraform.clouds.planned import Law, Mistake, Planned
from tests.terraform.workspace import ROOT

GIVEN: Mapping[str, Any] = {
    "name": "burst",
    "project": "my-project",
    "region": "us-central1",
    "pools": [
        {
            "instance_type": "a2-highgpu-1g",
            "zone": "us-central1-a",
            "use_spot": True,
            "max_nodes": 4,
        },
        {"instance_type": "a2-highgpu-1g", "zone": "us-central1-b", "usd_per_hour": 3.4},
    ],
    "image": "projects/my-project/global/images/family/hybrid-node",
    "max_life_hours": 48,
    "on_prem_cidrs": ["192.168.0.0/24"],
    "launcher_members": ["serviceAccount:head@my-project.iam.gserviceaccount.com"],
    "iap_ssh": True,
    "vpn": {"address": "203.0.113.10"},
    "vpn_secret": "a secret of twenty characters",
    "kms_key": "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k",
    "expire_checkpoints_after_days": 30,
    "billing_account": "012345-6789AB-CDEF01",
    "monthly_budget_usd": 1000,
    "tags": {"team": "ml"},
}
"""All that the module can make, in one plan."""


def permissions_of_the_adapter() -> set[str]:
    """Return what docs/fidelity/gcp.md lists, which the adapter's own tests prove to be exact."""
    page = (ROOT / "docs" / "fidelity" / "gcp.md").read_text(encoding="utf-8")
    listed = page.partition("<!-- permissions -->")[2].split("```")[1].split()
    assert "compute.instances.create" in listed
    # `service_account`, which the module sets; of network tags and public addresses it has none.
    return {*listed, "compute.instances.setServiceAccount"}


def _is_closed(plan: Planned) -> bool:
    rules = [r for r in plan.of_type("google_compute_firewall") if r["direction"] == "INGRESS"]
    sources = [s for rule in rules for s in rule.get("source_ranges") or ()]
    return bool(sources) and all(int(s.split("/")[1]) >= 8 for s in sources)


def _launcher(plan: Planned) -> Mapping[str, Any]:
    roles = plan.of_type("google_project_iam_custom_role")
    return next(role for role in roles if role["role_id"].endswith("_launcher"))


def _bindings(plan: Planned) -> list[Mapping[str, Any]]:
    return plan.of_type("google_project_iam_member")


LAWS: Mapping[str, Law] = {
    "no way in from the internet": _is_closed,
    "rules are about the nodes' account only": lambda plan: all(
        r["target_service_accounts"] == ["burst-node@my-project.iam.gserviceaccount.com"]
        for r in plan.of_type("google_compute_firewall")
    ),
    "what leaves is denied unless a rule allows it": lambda plan: any(
        r["direction"] == "EGRESS" and r["deny"] and r["destination_ranges"] == ["0.0.0.0/0"]
        for r in plan.of_type("google_compute_firewall")
    ),
    "no public address": lambda plan: (
        not any(
            n.get("access_config")
            for t in plan.of_type("google_compute_region_instance_template")
            for n in t["network_interface"]
        )
    ),
    "Google's APIs are reached without a public address": lambda plan: all(
        s["private_ip_google_access"] for s in plan.of_type("google_compute_subnetwork")
    ),
    "the bucket is closed to the public": lambda plan: all(
        b["public_access_prevention"] == "enforced" for b in plan.of_type("google_storage_bucket")
    ),
    "objects have no access lists": lambda plan: all(
        b["uniform_bucket_level_access"] for b in plan.of_type("google_storage_bucket")
    ),
    "old versions are kept": lambda plan: all(
        b["versioning"] == [{"enabled": True}] for b in plan.of_type("google_storage_bucket")
    ),
    "a destroy empties no bucket": lambda plan: (
        not any(b["force_destroy"] for b in plan.of_type("google_storage_bucket"))
    ),
    "the bucket has the given key": lambda plan: all(
        [e["default_kms_key_name"] for e in b["encryption"]] == [GIVEN["kms_key"]]
        for b in plan.of_type("google_storage_bucket")
    ),
    "the launcher may do what the adapter does, and no more": lambda plan: (
        set(_launcher(plan)["permissions"]) == permissions_of_the_adapter()
    ),
    "every right in the project ends at hybrid's instances": lambda plan: all(
        re.search(r"startsWith\(\"hybrid-\"\)", c["expression"])
        for b in _bindings(plan)
        for c in b["condition"] or [{"expression": ""}]
    ),
    "nobody gets a ready-made role in the project": lambda plan: (
        not any(str(b.get("role", "")).startswith("roles/") for b in _bindings(plan))
    ),
    "the nodes' account is the launcher's only other right": lambda plan: (
        [b["role"] for b in plan.of_type("google_service_account_iam_member")]
        == ["roles/iam.serviceAccountUser"]
    ),
    "a node reads and writes objects, and owns no bucket": lambda plan: (
        [b["role"] for b in plan.of_type("google_storage_bucket_iam_member")]
        == ["roles/storage.objectUser"]
    ),
    "machines boot only what is signed": lambda plan: all(
        c["enable_secure_boot"]
        for t in plan.of_type("google_compute_region_instance_template")
        for c in t["shielded_instance_config"]
    ),
    "keys of the project open no node": lambda plan: all(
        t["metadata"]["block-project-ssh-keys"] == "true"
        for t in plan.of_type("google_compute_region_instance_template")
    ),
    "the budget counts this cluster": lambda plan: all(
        f["labels"] == {"hybrid-cluster": "burst"}
        for b in plan.of_type("google_billing_budget")
        for f in b["budget_filter"]
    ),
    "the network's connections are logged": lambda plan: all(
        s["log_config"] for s in plan.of_type("google_compute_subnetwork")
    ),
}

BREAKING: tuple[Mistake, ...] = (
    Mistake(
        "network.tf",
        'source_ranges           = ["35.235.240.0/20"]',
        'source_ranges           = ["0.0.0.0/0"]',
        "no way in from the internet",
    ),
    Mistake(
        "network.tf",
        "source_ranges           = var.on_prem_cidrs\n"
        "  target_service_accounts = [local.node_email]",
        "source_ranges           = var.on_prem_cidrs\n  target_service_accounts = []",
        "rules are about the nodes' account only",
    ),
    Mistake(
        "network.tf",
        "  deny {\n    protocol",
        "  allow {\n    protocol",
        "what leaves is denied unless a rule allows it",
    ),
    Mistake(
        "launch.tf",
        "subnetwork = local.subnetwork\n",
        "subnetwork = local.subnetwork\n    access_config {}\n",
        "no public address",
    ),
    Mistake(
        "network.tf",
        "private_ip_google_access = true",
        "private_ip_google_access = false",
        "Google's APIs are reached without a public address",
    ),
    Mistake(
        "storage.tf",
        '"enforced"',
        '"inherited"',
        "the bucket is closed to the public",
    ),
    Mistake(
        "storage.tf",
        "uniform_bucket_level_access = true",
        "uniform_bucket_level_access = false",
        "objects have no access lists",
    ),
    Mistake("storage.tf", "    enabled = true", "    enabled = false", "old versions are kept"),
    Mistake(
        "storage.tf",
        "force_destroy               = false",
        "force_destroy               = true",
        "a destroy empties no bucket",
    ),
    Mistake(
        "storage.tf",
        "for_each = var.kms_key == null ? [] : [var.kms_key]",
        "for_each = []",
        "the bucket has the given key",
    ),
    Mistake(
        "iam.tf",
        '    "compute.instances.list",\n',
        '    "compute.instances.list",\n    "compute.instances.stop",\n',
        "the launcher may do what the adapter does, and no more",
    ),
    Mistake(
        "iam.tf",
        "expression  = local.own_or_other",
        'expression  = "true"',
        "every right in the project ends at hybrid's instances",
    ),
    Mistake(
        "iam.tf",
        "role    = google_project_iam_custom_role.node[0].name",
        'role    = "roles/compute.instanceAdmin.v1"',
        "nobody gets a ready-made role in the project",
    ),
    Mistake(
        "iam.tf",
        '"roles/iam.serviceAccountUser"',
        '"roles/iam.serviceAccountTokenCreator"',
        "the nodes' account is the launcher's only other right",
    ),
    Mistake(
        "iam.tf",
        '"roles/storage.objectUser"',
        '"roles/storage.admin"',
        "a node reads and writes objects, and owns no bucket",
    ),
    Mistake(
        "launch.tf",
        "enable_secure_boot          = true",
        "enable_secure_boot          = false",
        "machines boot only what is signed",
    ),
    Mistake(
        "launch.tf",
        'block-project-ssh-keys = "true"',
        'block-project-ssh-keys = "false"',
        "keys of the project open no node",
    ),
    Mistake("budget.tf", '"hybrid-cluster"', '"cluster"', "the budget counts this cluster"),
    Mistake(
        "network.tf",
        '  log_config {\n    aggregation_interval = "INTERVAL_10_MIN"\n'
        '    flow_sampling        = 0.1\n    metadata             = "INCLUDE_ALL_METADATA"\n  }\n',
        "",
        "the network's connections are logged",
    ),
)

INVALID: tuple[Mistake, ...] = (
    Mistake("storage.tf", "force_destroy ", "force_delete ", r'"force_delete" is not expected'),
    Mistake(
        "network.tf",
        "router                             = google_compute_router.this[0].name\n",
        "",
        r'"router" is required',
    ),
    Mistake(
        "launch.tf",
        "subnetwork = local.subnetwork",
        "subnetwork = local.subnet",
        r'local value with the name "subnet" has not',
    ),
    Mistake(
        "iam.tf",
        'permissions = ["compute.instances.delete"]',
        'permissions = { delete = "compute.instances.delete" }',
        r'"permissions": set of string required',
    ),
    Mistake(
        "budget.tf",
        "    calendar_period",
        '    creation_time = "now"\n    calendar_period',
        r'"creation_time" is not expected',
    ),
    Mistake(
        "vpn.tf",
        "shared_secret_wo                = var.vpn_secret",
        "shared_secret                   = var.vpn_secret",
        r'"shared_secret".*(phemeral|write-only)',
    ),
)
