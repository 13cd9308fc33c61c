"""Hosts over SSH that join and leave: real OpenSSH, real node program, fake Ray."""

from __future__ import annotations

import base64
import io
import json
import os
import platform
import shutil
import signal
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ssh_fleet import (
    Destination,
    Look,
    Records,
    Site,
    Ssh,
    SshFleet,
    SshHost,
    Wanted,
)
from hybrid.adapters.ssh_fleet.keeper import Keeper
from hybrid.adapters.ssh_fleet.parcel import pack, parcel
from hybrid.core.bootstrap import NodePlan
from hybrid.core.errors import FleetError
from hybrid.core.ports import HostState
from hybrid.core.quantity import gpu_request
from hybrid.node import processes
from hybrid.node.environment import TAG
from tests.node.box import wait_until
from tests.sshd.network import Machine, Network
from tests.sshd.ray import interpreter, nvidia_smi
from tests.sshd.server import Keys

pytestmark = pytest.mark.slow

CLUSTER = "c0ffee00"
TOKEN = "canary-token"
CARDS = (("GPU-1", "NVIDIA GeForce RTX 3070", 8192), ("GPU-2", "NVIDIA GeForce RTX 4090", 24564))


class Lab:
    """Machines, and fleets of one cluster over them, as often as a controller is started."""

    def __init__(self, folder: Path, keys: Keys, network: Network) -> None:
        self.folder = folder
        self.network = network
        self._keys = keys
        self._fleets: list[SshFleet] = []
        self.records = Records(folder / "hosts")

    def machine(self, hostname: str, *, ray: str = "2.60.0", has_systemd: bool = False) -> Machine:
        made = self.network.machine(hostname, has_systemd=has_systemd)
        interpreter(made.home / "ray", ray)
        return made

    def host(self, name: str, machine: Machine, **changes: Any) -> SshHost:
        plan = {
            "python": "unused",
            "temp_dir": "/tmp/unused",
            "resources": {"CPU": 2},
            "head_address": f"{self.network.address}:6379",
            "labels": {"site": "onprem"},
        }
        usual = {"python_version": platform.python_version(), "ray_version": "2.60.0"}
        ports = {"gcs": "Ray's head"}
        to = Destination(machine.address, "~/ray/bin/python")
        wanted = Wanted(**(usual | {"address": machine.address, "ports": ports} | changes))
        return SshHost(name, to, NodePlan.model_validate(plan), wanted)

    def fleet(self, *hosts: SshHost) -> SshFleet:
        ssh = Ssh(self.folder / f"s{len(self._fleets)}", self._keys.settings(), SystemClock())
        look = Look(self.network.address, {"gcs": (self.network.address, 6379)})
        site = Site(CLUSTER, lambda: TOKEN, look, ssh, self.records, SystemClock())
        made = SshFleet(hosts, site)
        self._fleets.append(made)
        return made

    def close(self) -> None:
        for fleet in self._fleets:
            fleet.close()


@pytest.fixture
def lab(short: Path, keys: Keys, network: Network) -> Iterator[Lab]:
    made = Lab(short, keys, network)
    yield made
    made.close()


def wait_for(fleet: SshFleet, host: str, state: HostState, limit_s: float = 30.0) -> None:
    wait_until(
        lambda: fleet.probe(host).state is state,
        f"{host} to be {state}; it is {fleet.probe(host)}",
        limit_s,
    )


def folder_of(machine: Machine, name: str) -> Path:
    return machine.home / ".hybrid" / "nodes" / CLUSTER / name


def names(machine: Machine) -> set[str]:
    found = [processes.find(pid) for pid in machine.pids()]
    return {process.name for process in found if process is not None} - {"sshd"}


def command_lines(machine: Machine) -> str:
    paths = [Path(f"/proc/{pid}/cmdline") for pid in machine.pids()]
    return "\n".join(path.read_text() for path in paths if path.exists())


def unpacked(program: Mapping[str, str]) -> dict[str, bytes]:
    content = io.BytesIO(base64.b64decode(program["content"]))
    with tarfile.open(fileobj=content, mode="r:gz") as tar:
        return {about.name: tar.extractfile(about).read() for about in tar}  # type: ignore[union-attr]


def test_a_host_joins_and_leaves_without_a_trace(lab: Lab) -> None:
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine))
    assert fleet.hosts() == ("a",)

    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)

    assert "raylet" in names(machine)
    status = fleet.probe("a")
    assert set(status.pids) <= machine.own_pids().keys()
    assert status.shape == {"CPU": 2, "GPU": 0}
    assert lab.records.read()["a"].address == machine.address
    token = folder_of(machine, "a") / "ray_token"
    assert (token.read_text(), token.stat().st_mode & 0o777) == (TOKEN, 0o600)
    assert TOKEN not in (folder_of(machine, "a") / "node.json").read_text()
    fleet.leave("a")
    fleet.leave("a")
    assert fleet.probe("a").state is HostState.ABSENT
    assert names(machine) == set()
    assert not (machine.home / ".hybrid").exists()
    assert lab.records.read() == {}


def test_a_second_join_leaves_work_alone(lab: Lab) -> None:
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    before = fleet.probe("a").pids

    again = lab.fleet(lab.host("a", machine))  # the next controller's
    again.join("a")
    wait_for(again, "a", HostState.JOINED)

    assert again.probe("a").pids == before


def test_hosts_join_at_the_same_time_and_one_that_is_off_holds_nobody_up(lab: Lab) -> None:
    machines = {name: lab.machine(name) for name in ("a", "b", "off")}
    machines["off"].power_off()
    machines["off"].cut()
    fleet = lab.fleet(*(lab.host(name, machine) for name, machine in machines.items()))
    for name in fleet.hosts():
        fleet.join(name)
    for name in ("a", "b"):
        wait_for(fleet, name, HostState.JOINED)

    wait_for(fleet, "off", HostState.FAILED)

    assert "does not answer" in fleet.probe("off").problem
    assert "power it on" in fleet.probe("off").problem.lower()
    fleet.leave("off")  # it never joined, so there is nothing to wait for


def test_a_host_that_is_switched_on_later_joins_by_itself(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.adapters.ssh_fleet.keeper._AWAY_S", 0.2)
    machine = lab.machine("m")
    machine.power_off()
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.FAILED)

    machine.start()

    wait_for(fleet, "a", HostState.JOINED)


def test_a_host_that_reboots_fails_and_joins_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_AWAY_S", "_RUNNING_S"):
        monkeypatch.setattr(f"hybrid.adapters.ssh_fleet.keeper.{name}", 0.2)
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)

    machine.power_off()
    wait_for(fleet, "a", HostState.FAILED)
    machine.start()

    # Its processes may well have the ids that those before had.
    wait_for(fleet, "a", HostState.JOINED)
    assert set(fleet.probe("a").pids) <= machine.own_pids().keys()


def test_where_systemd_runs_a_reboot_needs_nobody(lab: Lab) -> None:
    machine = lab.machine("m", has_systemd=True)
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    unit = machine.units / f"hybrid-{CLUSTER}-a.service"
    assert unit.exists()
    assert (folder_of(machine, "a") / "kept_by").read_text() == "system"
    fleet.close()

    machine.power_off()
    machine.boot()

    wait_until(lambda: "raylet" in names(machine), "the node to start by itself")
    again = lab.fleet(lab.host("a", machine))
    again.join("a")
    wait_for(again, "a", HostState.JOINED)
    assert set(again.probe("a").pids) <= machine.own_pids().keys()
    again.leave("a")
    assert names(machine) == set()
    assert not unit.exists()
    machine.power_off()
    machine.boot()
    assert names(machine) == set()


def test_a_systemd_that_refuses_is_done_without(lab: Lab) -> None:
    machine = lab.machine("m", has_systemd=True)
    machine.tool("systemctl", "#!/bin/sh\nexit 1\n")
    fleet = lab.fleet(lab.host("a", machine))

    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)

    assert (folder_of(machine, "a") / "kept_by").read_text() == ""
    assert [path.name for path in machine.units.iterdir()] == []


def test_a_node_that_dies_is_told_and_can_join_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.adapters.ssh_fleet.keeper._RUNNING_S", 0.2)
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)

    os.kill(machine.own_pids()[fleet.probe("a").pids[1]], signal.SIGKILL)
    wait_for(fleet, "a", HostState.FAILED)

    assert fleet.probe("a").problem == "Ray ended by itself: raylet was killed by SIGKILL"
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)


@pytest.mark.parametrize("ray", ["2.60.1", "2.59.0", ""])
def test_another_ray_is_refused_with_what_to_install(lab: Lab, ray: str) -> None:
    machine = lab.machine("m", ray=ray)
    fleet = lab.fleet(lab.host("a", machine))

    fleet.join("a")
    wait_for(fleet, "a", HostState.FAILED)

    problem = fleet.probe("a").problem
    assert "-m pip install 'ray[default]==2.60.0'" in problem
    assert (ray or "not installed") in problem
    assert lab.records.read() == {}
    assert not (machine.home / ".hybrid").exists()


def test_another_minor_version_of_python_is_refused(lab: Lab) -> None:
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine, python_version="3.99.1"))

    fleet.join("a")
    wait_for(fleet, "a", HostState.FAILED)

    assert "but the head runs 3.99.1" in fleet.probe("a").problem


def test_all_cards_of_a_mixed_host_are_brought(lab: Lab) -> None:
    machine = lab.machine("m")
    machine.tool("nvidia-smi", nvidia_smi(*CARDS))
    fleet = lab.fleet(lab.host("a", machine, is_auto=True))

    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)

    assert fleet.probe("a").shape == {
        "CPU": 2,
        "GPU": 2,
        "accelerator_type:RTX-3070": 1,
        "accelerator_type:RTX-4090": 1,
    }
    again = lab.fleet(lab.host("a", machine, is_auto=True))
    assert again.probe("a").shape["GPU"] == 2  # known before it was asked


def test_work_sees_only_the_cards_that_are_configured(lab: Lab) -> None:
    machine = lab.machine("m")
    machine.tool("nvidia-smi", nvidia_smi(*CARDS))
    fleet = lab.fleet(lab.host("a", machine, gpus=gpu_request("RTX-4090:1")))

    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)

    orders = json.loads((folder_of(machine, "a") / "node.json").read_text())
    assert orders["env"]["CUDA_VISIBLE_DEVICES"] == "GPU-2"
    assert "--num-gpus=1" in orders["command"]
    assert "--labels=accelerator=RTX-4090,site=onprem" in orders["command"]
    given = json.loads(machine.file(f"{orders['temp_dir']}/fake.json").read_text())
    assert given["env"]["CUDA_VISIBLE_DEVICES"] == "GPU-2"
    assert given["env"]["RAY_AUTH_TOKEN"] == TOKEN


def test_a_host_without_a_driver_joins_without_gpus_only_if_told_so(lab: Lab) -> None:
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine, is_auto=True))
    fleet.join("a")
    wait_for(fleet, "a", HostState.FAILED)
    assert "nvidia-smi is not there" in fleet.probe("a").problem

    told = lab.fleet(lab.host("a", machine))
    told.join("a")

    wait_for(told, "a", HostState.JOINED)
    assert told.probe("a").shape["GPU"] == 0


def test_one_machine_under_two_names_joins_once(lab: Lab) -> None:
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine), lab.host("b", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)

    fleet.join("b")

    wait_for(fleet, "b", HostState.FAILED)
    assert "hosts b and a have the same machine (m, at ssh://" in fleet.probe("b").problem
    assert fleet.probe("a").state is HostState.JOINED


def test_a_clock_that_is_ten_minutes_off_keeps_nobody_out(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = SystemClock.now_s
    monkeypatch.setattr(SystemClock, "now_s", lambda self: now_s(self) - 600)
    fleet = lab.fleet(lab.host("a", lab.machine("m")))

    fleet.join("a")

    wait_for(fleet, "a", HostState.JOINED)


def test_a_key_that_changed_fails_the_host_and_sends_it_nothing(lab: Lab) -> None:
    machine = lab.machine("m")
    machine.stop()
    machine.new_host_key()
    machine.start()
    fleet = lab.fleet(lab.host("a", machine))

    fleet.join("a")
    wait_for(fleet, "a", HostState.FAILED)

    assert "shows another key than the one on record" in fleet.probe("a").problem
    assert not (machine.home / ".hybrid").exists()


def test_a_host_that_left_the_configuration_is_ended(lab: Lab) -> None:
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    fleet.close()

    after = lab.fleet()

    assert after.removed_hosts() == ["a"]
    assert after.leave_removed() == ["a"]
    assert after.removed_hosts() == []
    assert names(machine) == set()


def test_a_host_that_is_off_at_the_end_is_not_forgotten(lab: Lab) -> None:
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    machine.power_off()

    with pytest.raises(FleetError, match="does not answer"):
        fleet.leave("a")
    with pytest.raises(FleetError, match=r"host a, which is no longer configured, may still"):
        lab.fleet().leave_removed()

    assert fleet.removed_hosts() == []
    assert list(lab.records.read()) == ["a"]
    machine.start()
    fleet.leave("a")
    assert lab.records.read() == {}


def test_a_host_that_moved_is_ended_where_it_was(lab: Lab) -> None:
    old, new = lab.machine("old"), lab.machine("new")
    fleet = lab.fleet(lab.host("a", old))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    fleet.close()

    moved = lab.fleet(lab.host("a", new))
    moved.join("a")
    wait_for(moved, "a", HostState.JOINED)

    assert names(old) == set()
    assert "raylet" in names(new)


def test_a_host_that_moved_from_a_dead_machine_says_what_to_remove(lab: Lab) -> None:
    old, new = lab.machine("old"), lab.machine("new")
    fleet = lab.fleet(lab.host("a", old))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    fleet.close()
    old.power_off()
    moved = lab.fleet(lab.host("a", new))

    moved.join("a")
    wait_for(moved, "a", HostState.FAILED)

    problem = moved.probe("a").problem
    assert f"host a was at {old.address}, where its node must end first" in problem
    assert f"if that machine is gone for good, remove {lab.records.path('a')}" in problem
    lab.records.path("a").unlink()
    moved.join("a")
    wait_for(moved, "a", HostState.JOINED)


def test_what_a_power_cut_emptied_is_made_anew(lab: Lab) -> None:
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    machine.power_off()
    programs = (machine.home / ".hybrid" / "programs").glob("*/hybrid/node/*.py")
    orders = [folder_of(machine, "a") / name for name in ("node.json", "pid.json", "status.json")]
    for path in (*programs, *orders):
        path.write_text("")
    machine.start()

    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)

    assert "raylet" in names(machine)


def test_after_a_reboot_the_newest_node_program_starts_the_node(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = lab.machine("m")
    newer = parcel()
    older = pack({**unpacked(newer), "hybrid/node/older.py": b""})
    for program in (older, newer):
        monkeypatch.setattr("hybrid.adapters.ssh_fleet.host.parcel", lambda found=program: found)
        fleet = lab.fleet(lab.host("a", machine))
        fleet.join("a")
        wait_for(fleet, "a", HostState.JOINED)
        fleet.close()
        assert f"/programs/{program['name']}/hybrid/node/__main__.py" in command_lines(machine)
        machine.power_off()
        machine.start()


def test_a_disk_that_can_only_be_read_keeps_no_node_alive(lab: Lab) -> None:
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    machine.mount("--bind", machine.home, machine.home)
    machine.mount("-o", "remount,bind,ro", machine.home)

    with pytest.raises(FleetError, match=r"Read-only file system.*Repair that disk"):
        fleet.leave("a")

    assert names(machine) == set()
    assert list(lab.records.read()) == ["a"]


def test_leaving_ends_what_is_ours_only(lab: Lab) -> None:
    machine = lab.machine("m")
    machine.tool("other", "#!/bin/sh\nexec sleep 1000\n")
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    tagged = [
        pid for pid in machine.pids() if f"{TAG}={CLUSTER}/a".encode() in processes.environment(pid)
    ]
    others = lab.fleet(lab.host("other", lab.machine("n")))
    others.join("other")
    wait_for(others, "other", HostState.JOINED)

    fleet.leave("a")

    assert tagged
    assert not any(processes.find(pid) for pid in tagged)
    assert others.probe("other").state is HostState.JOINED


def test_a_node_whose_folder_was_removed_there_can_join_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.adapters.ssh_fleet.keeper._RUNNING_S", 0.2)
    machine = lab.machine("m")
    fleet = lab.fleet(lab.host("a", machine))
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)

    shutil.rmtree(machine.home / ".hybrid")
    wait_until(lambda: names(machine) == set(), "the node to notice and to end")
    wait_for(fleet, "a", HostState.ABSENT)

    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)


def test_an_unknown_host_is_named_with_the_known_ones(lab: Lab) -> None:
    fleet = lab.fleet(lab.host("a", lab.machine("m")))

    for verb in (fleet.join, fleet.leave, fleet.probe):
        with pytest.raises(FleetError, match="there is no host 'c'; hosts of this cluster: a"):
            verb("c")


def test_a_damaged_record_is_told_with_its_place(lab: Lab) -> None:
    (lab.folder / "hosts").mkdir()
    (lab.folder / "hosts" / "a.json").write_text("{}")

    with pytest.raises(FleetError, match=r"hosts/a\.json is damaged"):
        lab.fleet().removed_hosts()


def test_asking_for_a_state_never_waits(lab: Lab) -> None:
    machine = lab.machine("m")
    machine.cut()
    host = lab.host("a", machine)
    fleet = lab.fleet(host)

    status = fleet.probe("a")

    assert status.state is HostState.JOINING
    assert isinstance(fleet._keepers["a"], Keeper)
