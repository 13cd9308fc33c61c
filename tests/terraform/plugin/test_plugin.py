"""The protocol, by the real Terraform and a provider that uses all of it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.node.box import wait_until
from tests.terraform.rig import Rig

_HEAD = """
terraform {
  required_providers {
    keeper = { source = "hybrid-burst/keeper" }
  }
}
"""
_FULL = (
    _HEAD
    + """
resource "keeper_box" "a" {
  name      = "one"
  price     = 0.1
  labels    = { team = "vision" }
  place     = { zone = "z1", rack = 7 }
  pair      = ["x", 2.5]
  secret_wo = "do-not-keep-me"
  disks     = [{ gib = 10 }, { gib = 20, kind = "disk" }]
  burst {
    cloud = "aws"
    usd   = 3.3
  }
  burst {
    cloud = "gcp"
  }
  zone {
    name = "b"
  }
  zone {
    name = "a"
  }
  timeouts {
    create = "3m"
  }
}
data "keeper_look" "a" {
  id = keeper_box.a.id
}
output "look" {
  value = data.keeper_look.a
}
"""
)


def _box(name: str, more: str = "") -> str:
    return f'{_HEAD}\nresource "keeper_box" "a" {{\n  name = "{name}"\n{more}\n}}\n'


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = Rig(tmp_path, {"KEEPER_DB": str(tmp_path / "boxes.json")})
    made.provide("keeper", "tests.terraform.plugin.keeper")
    made.write(_FULL)
    made.ok("init")
    return made


def _boxes(rig: Rig) -> dict[str, Any]:
    return dict(json.loads(Path(rig.env["KEEPER_DB"]).read_text()))


def _pids_with(word: str) -> set[int]:
    """Return the processes whose environment has `word`, apart from this one."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "environ").read_bytes():
                found.add(int(entry.name))
        except OSError:
            continue
    return found - {os.getpid()}


def test_all_kinds_of_values_go_through_a_whole_life(rig: Rig) -> None:
    rig.ok("validate")
    rig.apply()

    made = rig.attributes("keeper_box.a")
    assert made["price"] == 0.1
    assert made["size"] == 4
    assert made["place"] == {"zone": "z1", "rack": 7}
    assert made["pair"] == {"value": ["x", 2.5], "type": ["tuple", ["string", "number"]]} or (
        made["pair"] == ["x", 2.5]
    )
    assert made["disks"] == [
        {"gib": 10, "kind": "ssd", "path": "/dev/0"},
        {"gib": 20, "kind": "disk", "path": "/dev/1"},
    ]
    assert [item["cloud"] for item in made["burst"]] == ["aws", "gcp"]
    assert {item["name"] for item in made["zone"]} == {"a", "b"}
    look = json.loads(rig.ok("output", "-json", "look"))
    assert look["found"] is True
    assert look["sides"] == [{"n": 1}, {"n": 0.25}]
    # the secret arrived, and is in no file of Terraform's
    assert made["secret_length"] == len("do-not-keep-me")
    assert "do-not-keep-me" not in (rig.folder / "terraform.tfstate").read_text()
    assert rig.is_in_line()

    rig.ok("destroy", "-auto-approve")
    assert _boxes(rig) == {}


def test_an_update_keeps_and_a_replacement_renews(rig: Rig) -> None:
    rig.write(_box("one", "  size = 9\n  price = 1.7"))
    rig.apply()

    rig.write(_box("one"))  # a value that is left out again takes its default again
    said = rig.apply()
    assert "0 added, 1 changed, 0 destroyed" in said
    assert rig.attributes("keeper_box.a")["size"] == 4
    assert rig.attributes("keeper_box.a")["price"] is None

    rig.write(_box("two"))
    said = rig.apply()
    assert "1 added, 0 changed, 1 destroyed" in said
    assert list(_boxes(rig)) == ["box-two"]


def test_drift_is_shown_and_what_was_deleted_is_made_again(rig: Rig) -> None:
    rig.write(_box("one"))
    rig.apply()
    boxes = _boxes(rig)
    boxes["box-one"]["size"] = 99
    Path(rig.env["KEEPER_DB"]).write_text(json.dumps(boxes))

    assert "99 -> 4" in rig.ok("plan")

    Path(rig.env["KEEPER_DB"]).write_text("{}")
    assert "1 to add" in rig.ok("plan")
    rig.apply()
    assert list(_boxes(rig)) == ["box-one"]


def test_import_reads_what_is_there(rig: Rig) -> None:
    rig.write(_box("one"))
    rig.apply()
    rig.ok("state", "rm", "keeper_box.a")

    rig.ok("import", "keeper_box.a", "box-one")

    assert rig.is_in_line()
    rig.ok("state", "rm", "keeper_box.a")
    assert "there is no such box" in rig.refused("import", "keeper_box.a", "box-nine")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("  size = -1", "must be 0 or more, not -1 with keeper_box.a, on main.tf line 10"),
        (
            '  burst {\n    cloud = "azure"\n  }',
            "write aws or gcp with keeper_box.a, on main.tf line 11",
        ),
        ("  disks = [{ gib = -5 }]", "must be 0 or more, not -5"),
        ('  size = "many"', "a number is required"),
        ("  colour = 1", "Unsupported argument"),
    ],
    ids=["attribute", "block", "nested-attribute", "type", "unknown-name"],
)
def test_bad_values_are_refused_at_their_place(rig: Rig, body: str, said: str) -> None:
    rig.write(_box("one", body))

    assert said in rig.refused("validate")


def test_a_check_of_the_resource_points_at_the_line(rig: Rig) -> None:
    rig.write(_box("two words"))

    said = rig.refused("validate")

    assert "a name has no spaces" in said
    assert 'name = "two words"' in said


def test_an_exception_is_an_error_with_its_words(rig: Rig) -> None:
    rig.write(_box("broken"))

    said = rig.refused("apply", "-auto-approve")

    assert "Changing keeper_box failed" in said
    assert "RuntimeError: the press jammed" in said


def test_an_old_state_is_upgraded(rig: Rig) -> None:
    rig.write(_box("one"))
    rig.apply()
    state = rig.state()
    instance = state["resources"][0]["instances"][0]
    instance["schema_version"] = 0
    instance["attributes"]["title"] = instance["attributes"].pop("name")
    state["serial"] += 1
    (rig.folder / "terraform.tfstate").write_text(json.dumps(state))

    assert rig.is_in_line()


@pytest.mark.parametrize("to_group", [True, False], ids=["from-a-terminal", "to-terraform-alone"])
def test_ctrl_c_in_a_creation_leaves_a_tainted_object_and_no_orphan(
    rig: Rig, to_group: bool
) -> None:
    rig.write(_box("slow"))
    running = rig.start("apply", "-auto-approve")
    wait_until(Path(rig.env["KEEPER_DB"]).with_suffix(".began").exists, "the creation to begin")

    if to_group:
        os.killpg(running.pid, signal.SIGINT)
    else:
        running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=60)

    assert running.returncode == 1, said
    assert "the box exists, and is not ready" in said
    assert rig.is_tainted("keeper_box.a")
    rig.ok("destroy", "-auto-approve")
    assert _boxes(rig) == {}


def test_a_killed_terraform_takes_its_provider_along(rig: Rig) -> None:
    rig.write(_box("slow"))
    running = rig.start("apply", "-auto-approve")
    wait_until(Path(rig.env["KEEPER_DB"]).with_suffix(".began").exists, "the creation to begin")
    mark = f"KEEPER_DB={rig.env['KEEPER_DB']}"
    assert _pids_with(mark) > {running.pid}

    running.kill()
    running.communicate(timeout=60)

    wait_until(lambda: not _pids_with(mark), "the provider to leave")


def test_a_curious_user_is_told_what_it_is() -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "tests.terraform.plugin.keeper"], capture_output=True, text=True
    )

    assert done.returncode == 1
    assert "Terraform starts it" in done.stderr
