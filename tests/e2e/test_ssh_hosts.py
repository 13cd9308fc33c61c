"""Two hosts over SSH, as far as SSH and Ray can tell: real sshd, real Ray, namespaces."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from hybrid.core.models import JobState
from hybrid.node.processes import find
from tests.e2e.conftest import deployed
from tests.e2e.deployment import LIMIT_S, Deployment
from tests.sshd.need import need_namespaces
from tests.sshd.network import Machine, Network
from tests.sshd.ray import nvidia_smi
from tests.sshd.server import Keys

pytestmark = [pytest.mark.ray, pytest.mark.slow]

NAMES = ("gpu-1", "gpu-2")
CARD = "NVIDIA GeForce RTX 3070"


class Site:
    """The hosts and a cluster over them."""

    def __init__(self, stack: ExitStack) -> None:
        need_namespaces()
        folder = Path(tempfile.mkdtemp(prefix="hk-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder)
        keys = Keys(folder / "keys")
        network = stack.enter_context(closing(Network(keys)))
        self.machines = {name: network.machine(name) for name in NAMES}
        for name, machine in self.machines.items():
            cards = [(f"GPU-{name}-{number}", CARD, 8192) for number in range(2)]
            machine.tool("nvidia-smi", nvidia_smi(*cards))
            machine.tool("nvcc", "#!/bin/sh\nexit 127\n")  # this machine may have one
        options = keys.settings()
        hosts = [
            {"name": name, "address": machine.address, "accelerators": "auto", "cpus": 1}
            for name, machine in self.machines.items()
        ]
        access = {"options": options.options, "config": options.config_file, "connect_limit": "2s"}
        self.cluster = stack.enter_context(
            deployed(
                head={"address": network.address, "port": "auto", "dashboard_port": "auto"},
                onprem={"python": sys.executable, "ssh": access, "hosts": hosts},
                clouds=None,
            )
        )


@pytest.fixture
def site() -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(stack)


def programs(machine: Machine) -> set[str]:
    found = [find(pid) for pid in machine.pids()]
    return {process.name for process in found if process is not None}


def hostnames(cluster: Deployment) -> list[str]:
    return sorted(facts["hostname"] for facts in cluster.started())


def gpus_of(cluster: Deployment, name: str) -> tuple[float | None, float | None]:
    """Return a node's (used, all) GPUs; Nones when there is no such node."""
    node = cluster.node(name)
    return (node.gpus_used, node.gpus_total) if node is not None else (None, None)


def assert_a_driver_on_a_host_keeps_its_output(cluster: Deployment) -> None:
    driver = cluster.client.submit("hostname; sleep 1; echo worked", gpus=1)

    followed = "".join(driver.logs(follow=True))

    words = followed.splitlines()
    assert words[-1] == "worked"
    assert set(words) & set(NAMES), followed  # Ray's own line may come after it
    assert driver.wait(timeout=LIMIT_S) is JobState.SUCCEEDED
    assert driver.logs() == followed


def test_hosts_over_ssh_work_reboot_in_the_middle_of_a_job_and_leave(site: Site) -> None:
    cluster, machines = site.cluster, site.machines
    survey = json.loads(cluster.hybrid("doctor", str(cluster.config), "--json").out)
    assert [host["host"] for host in survey["hosts"]] == list(NAMES)
    assert {c["state"] for host in survey["hosts"] for c in host["checks"]} == {"ok"}

    cluster.up()
    assert_a_driver_on_a_host_keeps_its_output(cluster)
    job = cluster.submit("site=onprem", count=2, gpus=2)
    cluster.wait_until(lambda: hostnames(cluster) == list(NAMES), "a task on each host")

    # Ray counts what a task has taken a moment after the task began.
    cluster.wait_until(lambda: gpus_of(cluster, "gpu-1") == (2.0, 2.0), "both GPUs in use")
    machines["gpu-2"].power_off()
    machines["gpu-2"].start()
    cluster.wait_until(
        lambda: hostnames(cluster) == ["gpu-1", "gpu-2", "gpu-2"], "its task to run there again"
    )
    survey = json.loads(cluster.hybrid("doctor", str(cluster.config), "--json").out)
    assert {c["state"] for host in survey["hosts"] for c in host["checks"]} == {"ok"}
    cluster.open_gate()
    assert job.wait(timeout=LIMIT_S) is JobState.SUCCEEDED

    cluster.down()

    cluster.assert_nothing_left()
    assert {name: programs(machine) for name, machine in machines.items()} == {
        name: {"sshd"} for name in NAMES
    }
    for machine in machines.values():
        assert not (machine.home / ".hybrid").exists()
