"""The provider by the real Terraform, on real `hybrid up` and HTTP; only Ray is left out."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request

import pytest

from hybrid.settings.words import NAME
from hybrid.terraform.provider import checks
from tests.node.box import wait_until
from tests.terraform.provider.conftest import Lab

_HEAD = """
terraform {
  required_providers {
    hybrid = { source = "hybrid-burst/hybrid" }
  }
}
"""
_CLUSTER = """
resource "hybrid_cluster" "a" {
  name   = "lab"
  config = "idle:\\n  after: 9m\\n"
}
"""
_POLICY = """
resource "hybrid_burst_policy" "a" {
  cluster  = hybrid_cluster.a.name
  max_wait = "7m"
  budget = {
    nodes       = 2
    usd_per_day = 12.5
  }
}
"""
_CLOUD = """
resource "hybrid_cloud" "a" {
  cluster = hybrid_cluster.a.name
  name    = "pretended"
  hybrid_provider = {
    provider = "local"
    pools = [{
      infra = "local", accelerators = "GPU:1", cpus = 1, usd_per_hour = 0.1, max_nodes = 1
    }]
  }
  depends_on = [hybrid_burst_policy.a]
}
"""
_STATUS = """
data "hybrid_status" "a" {
  cluster = hybrid_cluster.a.name
}
output "state" {
  value = data.hybrid_status.a.state
}
"""


def _begin(lab: Lab, *parts: str) -> None:
    lab.rig.write(_HEAD + "".join(parts))
    lab.rig.ok("init")


def _config(lab: Lab) -> dict[str, object]:
    return dict(json.loads(lab.hybrid("config", "show", "--running", "--json").stdout))


def _put(lab: Lab, name: str, content: dict[str, object]) -> None:
    record = lab.record("lab")
    assert record is not None
    request = urllib.request.Request(
        f"{record.url}/api/v1/layers/{name}",
        method="PUT",
        data=json.dumps({"source": "somebody", "content": content}).encode(),
        headers={"Authorization": f"Bearer {lab.token('lab')}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        assert json.load(answer)["is_ok"]


@pytest.mark.slow
def test_a_whole_life(lab: Lab) -> None:
    _begin(lab, _CLUSTER, _POLICY, _CLOUD, _STATUS)
    rig = lab.rig

    rig.apply()

    assert json.loads(rig.ok("output", "-json", "state")) == "ready"
    config = _config(lab)
    assert config["burst"]["queue"]["max_wait"] == "7m"  # type: ignore[index]
    assert config["clouds"]["ordered"][0]["infra"] == "local"  # type: ignore[index]
    assert config["idle"]["after"] == "9m"  # type: ignore[index]
    assert rig.is_in_line()
    # the token is in no file of Terraform's
    token = lab.token("lab")
    for file in rig.folder.rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes(), file

    rig.write((_HEAD + _CLUSTER + _POLICY + _CLOUD + _STATUS).replace('"7m"', '"8m"'))
    assert "0 added, 1 changed, 0 destroyed" in rig.apply()
    assert _config(lab)["burst"]["queue"]["max_wait"] == "8m"  # type: ignore[index]

    # somebody else changes the policy and the file: the plan shows both
    budget = {"nodes": 2, "usd_per_day": 12.5}
    _put(lab, "policy", {"burst": {"queue": {"max_wait": "1m"}}, "budget": budget})
    wait_until(lambda: lab.record("lab"), "the controller to be back")
    assert '"1m" -> "8m"' in rig.ok("plan")
    rig.apply()
    other = lab.home.parent / "other.yaml"
    other.write_text("name: lab\nidle:\n  after: 4m\n")
    assert lab.hybrid("up", str(other), "--yes").returncode == 0
    assert "after: 4m" in rig.ok("plan")
    rig.apply()
    assert rig.is_in_line()

    for kind, identity in (("cluster", "lab"), ("burst_policy", "lab"), ("cloud", "lab/pretended")):
        rig.ok("state", "rm", f"hybrid_{kind}.a")
        rig.ok("import", f"hybrid_{kind}.a", identity)
    assert rig.is_in_line()

    # deleted by hand: all of it is made again
    assert lab.hybrid("--cluster", "lab", "down", "--yes").returncode == 0
    assert "3 to add" in rig.ok("plan")
    rig.apply()

    rig.ok("destroy", "-auto-approve")
    assert lab.record("lab") is None
    assert lab.processes() == []
    assert not (lab.home / "lab" / "layers" / "policy.json").exists()


def test_one_that_runs_under_its_name_is_adopted(lab: Lab) -> None:
    file = lab.home.parent / "mine.yaml"
    file.write_text("name: lab\nidle:\n  after: 9m\n")
    assert lab.hybrid("up", str(file), "--yes").returncode == 0
    before = lab.record("lab")
    _begin(lab, _CLUSTER)

    lab.rig.apply()

    after = lab.record("lab")
    assert before is not None
    assert after is not None
    assert after.pid == before.pid
    lab.rig.ok("destroy", "-auto-approve")
    assert lab.processes() == []


def test_ctrl_c_in_a_start_leaves_a_tainted_cluster_that_destroy_ends(lab: Lab) -> None:
    lab.rig.env["STAND_IN_HANG"] = "1"
    _begin(lab, _CLUSTER)
    running = lab.rig.start("apply", "-auto-approve")
    wait_until(lambda: lab.record("lab"), "the controller to begin")

    os.killpg(running.pid, signal.SIGINT)
    said, _ = running.communicate(timeout=60)

    assert running.returncode == 1, said
    assert "interrupted in `hybrid up`" in said
    assert lab.rig.is_tainted("hybrid_cluster.a")
    assert lab.record("lab") is not None
    del lab.rig.env["STAND_IN_HANG"]
    lab.rig.ok("destroy", "-auto-approve")
    assert lab.processes() == []


def test_a_controller_elsewhere_is_adopted_by_address_and_token(lab: Lab) -> None:
    file = lab.home.parent / "mine.yaml"
    file.write_text("name: lab\n")
    assert lab.hybrid("up", str(file), "--yes").returncode == 0
    record = lab.record("lab")
    assert record is not None
    address = f'provider "hybrid" {{\n  address = "{record.url}"\n}}\n'
    remote = _CLUSTER.replace('  config = "idle:\\n  after: 9m\\n"\n', "")
    _begin(lab, address, remote, _POLICY)

    assert "needs its token" in lab.rig.refused("plan")
    lab.rig.env["HYBRID_TOKEN"] = "wrong"
    assert "the API token is missing or wrong" in lab.rig.refused("apply", "-auto-approve")
    lab.rig.env["HYBRID_TOKEN"] = lab.token("lab")
    lab.rig.write(_HEAD + address + remote.replace('"lab"', '"other"'))
    assert "runs cluster 'lab', not 'other'" in lab.rig.refused("apply", "-auto-approve")
    lab.rig.write(_HEAD + address + _CLUSTER)
    assert "`config` belongs to a cluster that this machine starts" in lab.rig.refused("plan")

    lab.rig.write(_HEAD + address + remote + _POLICY)
    lab.rig.apply()
    assert lab.rig.is_in_line()

    lab.rig.ok("destroy", "-auto-approve")
    wait_until(lambda: not lab.processes(), "the controller to end")


_WRONG = {
    "a bad name": (_CLUSTER.replace('"lab"', '"Lab 1"'), "'Lab 1' is not a cluster name; write"),
    "a long name": (_CLUSTER.replace('"lab"', f'"{"x" * 40}"'), "has 40 characters; write at most"),
    "a bad value": (_CLUSTER.replace("9m", "soon"), "idle.after:"),
    "a bad key": (_CLUSTER.replace("idle:", "idel:"), "did you mean"),
    "a bad duration": (_CLUSTER + _POLICY.replace('"7m"', '"7 weeks"'), "is not a duration; write"),
    "a negative sum": (_CLUSTER + _POLICY.replace("12.5", "-1"), "-1 is below zero; write 0 or"),
    "a part of a node": (_CLUSTER + _POLICY.replace("= 2", "= 2.5"), "2.5 is not a whole number"),
    "two of one name": (
        _CLUSTER + _CLUSTER.replace('"hybrid_cluster" "a"', '"hybrid_cluster" "b"'),
        "Two hybrid_cluster are named 'lab'",
    ),
    "no provider": (
        _CLUSTER + _POLICY + _CLOUD.replace('provider = "local"', 'cloud = "local"'),
        "hybrid_provider is no object with `provider`",
    ),
}
"""What is wrong -> a root module, and what its plan says."""


def test_a_plan_says_what_is_wrong(lab: Lab) -> None:
    """One folder for all, since `init` costs more than what is tested."""
    _begin(lab, _CLUSTER)
    for what, (part, said) in _WRONG.items():
        lab.rig.write(_HEAD + part)

        assert said in lab.rig.refused("plan"), what

    assert lab.processes() == []


def test_a_refusal_of_the_controller_is_shown(lab: Lab) -> None:
    _begin(lab, _CLUSTER, _POLICY, _CLOUD.replace('"GPU:1"', '"GPU:-1"'))

    said = lab.rig.refused("apply", "-auto-approve")

    assert "hybrid_cloud cloud-pretended of terraform: clouds.ordered[0].accelerators" in said
    lab.rig.ok("destroy", "-auto-approve")


def test_offers_come_from_the_price_lists(lab: Lab) -> None:
    _begin(
        lab,
        'data "hybrid_offers" "a" {\n  gpus = "A100:8"\n  limit = 2\n}\n'
        'output "offers" { value = data.hybrid_offers.a.offers }\n',
    )

    lab.rig.apply()

    offers = json.loads(lab.rig.ok("output", "-json", "offers"))
    assert len(offers) == 2
    assert all(offer["gpu_count"] == 8 for offer in offers)
    assert offers[0]["usd_per_hour"] <= offers[1]["usd_per_hour"]


@pytest.mark.parametrize("name", ["a", "a-1", "a" * 31, "a" * 32, "A", "1a", "", "a_b", "a-"])
def test_names_are_checked_as_the_settings_check_them(name: str) -> None:
    assert (checks.name(name) == "") is bool(re.fullmatch(NAME, name))
