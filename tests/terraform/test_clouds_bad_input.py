"""What people get wrong in a module's arguments: `terraform plan` says it in one sentence each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.clouds import baidu, gcp, head
from tests.terraform.clouds.planned import sentence
from tests.terraform.workspace import Mirror, Workspace

pytestmark = pytest.mark.slow

GIVEN = {"gcp": gcp.GIVEN, "baidu": baidu.GIVEN, "head": head.GIVEN}
GCP_POOL = gcp.GIVEN["pools"][0]
BAIDU_POOL = baidu.GIVEN["pools"][0]

# One plan each: Terraform tells all of them at once, and here one of a kind.
CASES: list[tuple[str, Mapping[str, Any], list[str]]] = [
    (
        "gcp",
        {
            "name": "a-name-of-thirty-characters-xx",
            "project": "My Project",
            "on_prem_cidrs": ["10.0.0.0/8"],
            "pools": [{**GCP_POOL, "zone": "europe-west4-a"}],
            "launcher_members": [],
            "monthly_budget_usd": 0.5,
            "tags": {"Team": "ml"},
            "kms_key": "my-key",
        },
        [
            r"name must be 3 to 25 lower-case letters",
            r"project must be the id of a project",
            r"on_prem_cidrs and cidr_block \(10\.72\.0\.0/16\) must not overlap",
            r"pools must all be in zones of us-central1, .*; found europe-west4-a\.",
            r"launcher_members must name who hybrid runs as",
            r"monthly_budget_usd must be a whole number",
            r"tags must be labels of Google Cloud",
            r"kms_key must be a key",
        ],
    ),
    (
        "gcp",
        {
            "name": "Burst_1",
            "pools": [],
            "on_prem_cidrs": ["192.168.0.5/24"],
            "launcher_members": ["allUsers"],
            "billing_account": None,
            "image": "debian-12",
            "disk_gib": 5,
            "subnetwork": "default",
            "bucket": "A",
        },
        [
            r"name must be 3 to 25 lower-case letters",
            r"pools must name at least one machine type",
            r"on_prem_cidrs must be ranges of IPv4 addresses that begin",
            r"launcher_members must be serviceAccount:.*never allUsers",
            r"monthly_budget_usd needs billing_account",
            r"image must be an image of Google Cloud",
            r"disk_gib must be a whole number from 10",
            r"subnetwork is for a network that exists",
            r"bucket must be 3 to 63",
        ],
    ),
    (
        "gcp",
        {
            "other_names": ["burst"],
            "pools": [GCP_POOL, GCP_POOL],
            "on_prem_cidrs": None,
            "create_bucket": False,
        },
        [
            r"name is that of another network in this configuration too",
            r"pools must differ in machine type, zone or market",
            r"vpn needs on_prem_cidrs",
            r"bucket must name one that exists",
        ],
    ),
    (
        "gcp",
        {"on_prem_cidrs": ["0.0.0.0/0"], "region": "the-moon", "image": None, "vpn_secret": "x"},
        [r"on_prem_cidrs must be your own networks", r"region must be a region of Google Cloud"],
    ),
    (
        "gcp",
        {"vpn_secret": None, "cloud_asn": 64514, "node_ports": [{"from": 9, "to": 1}]},
        [r"vpn_secret must have 20 characters or more", r"node_ports must be ranges"],
    ),
    (
        "baidu",
        {
            "name": "a-name-of-more-than-forty-characters-in-all",
            "zones": ["cn-gz-a"],
            "on_prem_cidrs": ["10.80.4.0/24"],
            "ssh_public_key": "-----BEGIN OPENSSH PRIVATE KEY-----",
            "root_disk_gb": 20,
            "launcher_pgp_key": "mine",
        },
        [
            r"name must be 3 to 40 lower-case letters",
            r"zones must all be zones of bj, .*; found cn-gz-a\.",
            r"on_prem_cidrs and cidr_block \(10\.80\.0\.0/16\) must not overlap",
            r"ssh_public_key must be one line of a public key.*never belongs here",
            r"root_disk_gb must be a whole number",
            r"launcher_pgp_key must be a public PGP key",
        ],
    ),
    (
        "baidu",
        {
            "name": "Burst",
            "pools": [],
            "on_prem_cidrs": ["0.0.0.0/0"],
            "tags": {"hybrid-cluster": "x"},
            "bcc_permissions": [],
        },
        [
            r"name must be 3 to 40 lower-case letters",
            r"pools must name at least one instance type",
            r"on_prem_cidrs must be your own networks",
            r"tags must have keys",
            r"bcc_permissions must be words",
        ],
    ),
    (
        "baidu",
        {
            "other_names": ["burst"],
            "pools": [{**BAIDU_POOL, "zone": "cn-bj-a"}],
            "exchange": None,
            "vpn_secret": "short",
        },
        [
            r"name is that of another network in this configuration too",
            r"pools with cny_per_hour or use_spot need exchange",
            r"pools must be in zones that have a subnet here",
            r"vpn_secret must have 20 characters",
        ],
    ),
    (
        "baidu",
        {
            "zones": None,
            "create_vpc": False,
            "vpn": None,
            "on_prem_cidrs": None,
            "cidr_block": "192.168.0.0/24",
            "exchange": {"cny_per_usd": 0.14, "as_of": "2026-11-27", "source": "a guess"},
        },
        [
            r"vpc_id must be the id of a VPC",
            r"subnet_ids must name the subnet of at least one zone",
            r"cidr_block must be from /16 to /20",
            r"exchange must have a cny_per_usd between 1 and 100",
        ],
    ),
    (
        "head",
        {
            "config": "name: another",
            "hybrid_providers": {"aws": {"region": "us-east-1"}},
            "ledger_parameter": "postgresql://hybrid:secret@db/hybrid",
            "package": "hybrid-burst",
            "pip_index_url": "https://me:secret@pip.example.com",
            "image": "debian-12",
            "volume_gib": 1,
            "availability_zone": "us-east-1",
            "on_prem_cidrs": ["0.0.0.0/0"],
            "head_ports": {"from": 22, "to": 65535},
        },
        [
            r"config must be the text of a hybrid\.yaml whose name is burst",
            r"hybrid_providers must be outputs hybrid_provider",
            r"ledger_parameter must be the name of a parameter.*never belongs here",
            r"package must be hybrid-burst with an exact version",
            r"pip_index_url must be an https:// address without a password",
            r"image must be an AMI",
            r"volume_gib must be a whole number",
            r"availability_zone must be a zone of AWS",
            r"on_prem_cidrs must be your own networks",
            r"head_ports must be a range from 1024",
        ],
    ),
]
IDS = [f"{name}-{place}" for place, (name, _, _) in enumerate(CASES)]


@pytest.fixture(scope="module")
def modules(mirror: Mirror, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Workspace]:
    """Return the modules, initialised; a plan that fails leaves nothing in them."""
    made = {}
    for name in GIVEN:
        made[name] = Workspace.of(tmp_path_factory.mktemp(name), mirror, f"modules/{name}")
        made[name].env.update({**baidu.KEYS, **head.KEYS})
        made[name].init()
    return made


@pytest.mark.parametrize(("name", "wrong", "said"), CASES, ids=IDS)
def test_a_plan_says_each_mistake_in_one_sentence(
    modules: dict[str, Workspace], name: str, wrong: Mapping[str, Any], said: list[str]
) -> None:
    given = {**GIVEN[name], **wrong}
    done = modules[name].plan({key: value for key, value in given.items() if value is not None})

    errors = done.errors()
    assert done.code == 1
    for pattern in said:
        found = sentence(errors, pattern)
        text = found.removeprefix("Invalid value for variable: ").partition(" This was checked")[0]
        assert text.endswith(".")
        assert not re.search(r"[.] [A-Z]", text), "more than one sentence"
    assert len(errors) == len(said), errors


def test_keys_of_baidu_that_are_missing_are_asked_for_by_name(
    modules: dict[str, Workspace], tmp_path: Path
) -> None:
    without = modules["baidu"].copy(tmp_path / "without")
    without.env.clear()

    done = without.plan(baidu.GIVEN)

    # As the real provider serves its schema: required, unless the environment has it.
    errors = done.errors()
    assert done.code == 1
    assert sentence(errors, r'"access_key" is required')
    assert sentence(errors, r'"secret_key" is required')


def test_two_modules_with_one_name_are_told_apart_in_the_plan(
    mirror: Mirror, tmp_path: Path
) -> None:
    """Terraform does not see that two modules of one project make the same names; a list does."""
    root = """
    locals { names = { us-central1 = "burst", europe-west4 = "burst" } }
    module "gcp" {
      for_each         = local.names
      source           = "../modules/gcp"
      name             = each.value
      other_names      = [for region, name in local.names : name if region != each.key]
      project          = "my-project"
      region           = each.key
      cidr_block       = each.key == "us-central1" ? "10.72.0.0/16" : "10.73.0.0/16"
      pools            = [{ instance_type = "g2-standard-8", zone = "${each.key}-a" }]
      launcher_members = ["serviceAccount:head@my-project.iam.gserviceaccount.com"]
    }
    """
    work = Workspace.of(tmp_path, mirror, "two", files={"main.tf": root}).init()

    done = work.plan()

    assert done.code == 1
    assert {" ".join(e.split()).partition(" This was")[0] for e in done.errors()} == {
        "Invalid value for variable: name is that of another network in this configuration too; "
        "give each module a name of its own, since the accounts and roles of a project share one "
        "list."
    }
