"""`hybrid doctor` on hosts over SSH: real sshd, and machines that are broken on purpose."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Run
from tests.sshd.need import need_namespaces
from tests.sshd.network import Machine, Network
from tests.sshd.ray import interpreter, nvidia_smi
from tests.sshd.server import Keys

pytestmark = pytest.mark.slow

CHECKS = ["ssh", "python", "ray", "gpus", "disk", "memory", "clock", "out", "in", "machine"]


class Lab:
    """Machines and a configuration over them."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.keys = Keys(folder / "keys")
        self.network = Network(self.keys)
        self.file = home.parent / "lab.yaml"
        self._hosts: list[dict[str, Any]] = []
        self.write()

    def machine(self, name: str, *, ray: str = "2.60.0", **host: Any) -> Machine:
        made = self.network.machine(name)
        interpreter(made.home / "ray", ray)
        self.host(name, made, **host)
        return made

    def host(self, name: str, machine: Machine, **host: Any) -> None:
        self._hosts.append({"name": name, "address": machine.address} | host)
        self.write()

    def write(self) -> None:
        settings = self.keys.settings()
        access = {"options": list(settings.options), "config": settings.config_file}
        onprem = {"python": "~/ray/bin/python", "ssh": access, "hosts": self._hosts}
        head = {"address": self.network.address, "port": "auto", "dashboard_port": "auto"}
        self.file.write_text(yaml.safe_dump({"name": "lab", "head": head, "onprem": onprem}))


@pytest.fixture
def lab(home: Path) -> Iterator[Lab]:
    need_namespaces()
    folder = Path(tempfile.mkdtemp(prefix="hk-", dir="/tmp"))
    made = Lab(folder, home)
    yield made
    made.network.close()
    shutil.rmtree(folder)


def survey(run: Run, lab: Lab) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the checks of each host."""
    answer = json.loads(run("doctor", str(lab.file), "--json").out)
    return {
        host["host"]: {check["name"]: check for check in host["checks"]} for host in answer["hosts"]
    }


def test_healthy_hosts_are_a_table_without_a_word_below(run: Run, lab: Lab) -> None:
    for name in ("a", "b"):
        machine = lab.machine(name, accelerators="A100:1")
        machine.tool("nvidia-smi", nvidia_smi((f"GPU-{name}", "NVIDIA A100-SXM4-80GB", 81920)))
        machine.tool("nvcc", "#!/bin/sh\nexit 127\n")  # this machine may have one

    shown = run("doctor", str(lab.file))

    assert shown.code == 0
    *_, head, first, second, verdict = shown.out.splitlines()
    assert head.split() == ["HOST", *(check.upper() for check in CHECKS)]
    assert first.split() == ["a", *["ok"] * 10]
    assert second.split() == ["b", *["ok"] * 10]
    assert verdict == "No problem found."


def test_each_broken_host_is_told_with_its_fault_and_remedy(run: Run, lab: Lab) -> None:
    lab.machine("fine")
    lab.machine("off").power_off()
    lab.machine("old", ray="2.59.9")
    lab.machine("elsewhere", python="/opt/none/python")
    lab.machine("bare", accelerators="auto")
    reinstalled = lab.machine("reinstalled")
    reinstalled.stop()
    reinstalled.new_host_key()
    reinstalled.start()
    (lab.machine("closed").folder / "authorized_keys").write_text("")

    found = survey(run, lab)

    faults = {
        host: [name for name, check in checks.items() if check["state"] == "fail"]
        for host, checks in found.items()
    }
    assert faults == {
        "fine": [],
        "off": ["ssh"],
        "old": ["ray"],
        "elsewhere": ["python"],
        "bare": ["gpus"],
        "reinstalled": ["ssh"],
        "closed": ["ssh"],
    }
    remedies = {host: found[host][fault[0]]["remedy"] for host, fault in faults.items() if fault}
    assert "power it on" in remedies["off"]
    assert "pip install 'ray[default]==2.60.0'" in remedies["old"]
    assert "install it with Ray" in remedies["elsewhere"]
    assert "NVIDIA's driver" in remedies["bare"]
    assert "remove the old key" in remedies["reinstalled"]
    assert "ssh-copy-id" in remedies["closed"]
    assert all(found[host][fault[0]]["is_blocking"] for host, fault in faults.items() if fault)


def test_faults_of_hosts_are_counted_and_are_exit_code_1(run: Run, lab: Lab) -> None:
    lab.machine("old", ray="2.60.1")

    shown = run("doctor", str(lab.file))

    assert shown.code == 1
    assert "old: ray: 2.60.1, but the head runs 2.60.0; it cannot join like this" in shown.out
    assert "  To do: run there: " in shown.out
    assert shown.out.splitlines()[-1] == "1 problem to repair."


def test_one_machine_under_two_names_is_found_out(run: Run, lab: Lab) -> None:
    once = lab.machine("once")
    lab.host("again", once, address=f"{once.user}@{once.ip}")

    found = survey(run, lab)

    assert found["once"]["machine"]["state"] == found["again"]["machine"]["state"] == "fail"


def test_without_a_cluster_we_stand_in_for_the_head(run: Run, lab: Lab) -> None:
    lab.machine("a")

    out = survey(run, lab)["a"]["out"]

    assert out["state"] == "ok"
    assert f"reaches Ray's head {lab.network.address}:" in out["found"]


def test_a_look_leaves_nothing_here_or_there(run: Run, lab: Lab) -> None:
    machine = lab.machine("a")

    survey(run, lab)

    assert not (machine.home / ".hybrid").exists()
    assert list(Path("/tmp").glob("hybrid-doctor-*")) == []
