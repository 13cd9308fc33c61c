"""Head, host and local instances on a real Ray: they join, are drained, die, and leave nothing."""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.local_fleet import LocalFleet
from hybrid.adapters.local_head import LocalHead
from hybrid.adapters.ray import RayCluster
from hybrid.adapters.ray.state import HOST_LABEL
from hybrid.core.bootstrap import HeadPlan, NodePlan
from hybrid.core.errors import ClusterError
from hybrid.core.models import CloudState, Node, NodeStatus
from hybrid.core.ports import DrainKind, HostState, ProviderContext
from hybrid.node import processes
from hybrid.node.environment import TAG
from hybrid.node.folder import Folder
from hybrid.node.ports import is_free
from providers.local import LocalProvider, make
from tests.node.box import PORTS, wait_until
from tests.node.controller import FakeController
from tests.providers.contract import end, launch, listed, live, make_spec
from tests.ray_cluster import TOKEN

pytestmark = [pytest.mark.ray, pytest.mark.slow]

STORE_BYTES = 80_000_000


class World:
    """A controller's base and its local cloud, with the real Ray."""

    def __init__(self, folder: Path, controller_url: str, **pool: Any) -> None:
        self.cluster_id = f"c-{uuid.uuid4().hex[:8]}"
        self.controller_url = controller_url
        self.folder = folder
        self.ray_dir = Path(f"/tmp/hybrid-test-{os.getpid()}/{uuid.uuid4().hex[:8]}")
        token_file = folder / "ray_token"
        token_file.write_text(TOKEN)
        common: dict[str, Any] = {"python": sys.executable, "object_store_bytes": STORE_BYTES}
        self.head = LocalHead(
            folder / "nodes" / "head",
            HeadPlan(temp_dir=f"{self.ray_dir}/head", resources={"CPU": 1}, **common),
            cluster_id=self.cluster_id,
            ray_token_file=token_file,
            ports=PORTS,
        )
        self.head.start()
        plan = NodePlan(
            temp_dir=f"{self.ray_dir}/a",
            resources={"CPU": 2, "GPU": 4},
            labels={"site": "onprem", "provider": "onprem", HOST_LABEL: "a"},
            head_address=self.head.address,
            **common,
        )
        self.fleet = LocalFleet(
            folder / "nodes",
            {"a": plan},
            cluster_id=self.cluster_id,
            ray_token_file=token_file,
            ports=PORTS,
        )
        kind = {"infra": "local", "accelerators": "A100:4", "cpus": 2, "usd_per_hour": 2.4}
        self.provider: LocalProvider = make(
            "local",
            {"pools": [{**kind, **pool}], "ports": PORTS},
            ProviderContext(
                cluster_id=self.cluster_id,
                cluster_name="test",
                state_dir=str(folder / "local"),
                ray_dir=str(self.ray_dir),
                clock=SystemClock(),
            ),
        )
        self.cluster = RayCluster(self.head.address, TOKEN)

    def rent(self) -> tuple[str, str]:
        """Return the provider's id and ours of a new instance."""
        offer = self.provider.offers()[0]
        labels = {"site": "cloud", "provider": "local", "accelerator": "A100"}
        labels["market"] = offer.market.value
        changes = {"head_address": self.head.address, "labels": labels}
        spec = make_spec(self).model_copy(update=changes)
        return launch(self.provider, spec, offer=offer), spec.instance_id

    def node(self, *, host: str = "", instance_id: str = "", is_head: bool = False) -> Node | None:
        """Return the node of a host or instance, or the head, once Ray has it."""
        try:
            nodes = self.cluster.view().nodes
        except ClusterError:  # not up yet
            return None
        for node in nodes:
            if (node.host, node.instance_id, node.is_head) == (host, instance_id, is_head):
                return node
        return None

    def wait_for_node(self, **which: Any) -> Node:
        found = wait_until(lambda: self.node(**which), f"the node of {which}", 90.0)
        assert found is not None
        return found

    def wait_for_start(self, instance_id: str) -> int:
        """Wait until the node program knows its raylet, and return that process."""
        folder = Folder(self.folder / "local" / "instances" / instance_id)

        def raylet_pid() -> int:
            status = folder.status()
            return (status.raylet_pid or 0) if status else 0

        return wait_until(raylet_pid, "the raylet's id", 60.0)

    def wait_for_death(self, instance_id: str) -> None:
        def is_dead() -> bool:
            node = self.node(instance_id=instance_id)
            return node is None or node.status is NodeStatus.DEAD

        wait_until(is_dead, "Ray to notice", 30.0)

    def pids(self) -> list[int]:
        prefix = f"{TAG}={self.cluster_id}/".encode()
        return [
            pid
            for pid in processes.find_all()
            if any(word.startswith(prefix) for word in processes.environment(pid))
        ]

    def ports(self) -> list[int]:
        """Return every port that was chosen for a node."""
        folders = [path.parent for path in self.folder.rglob("ports.json")]
        return [port for path in folders for port in Folder(path).ports().values()]

    def close(self) -> None:
        self.cluster.close()
        end(self.provider, *live(self.provider))
        self.fleet.leave("a")
        self.head.stop()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    had_ray_dir = Path("/tmp/ray").exists()
    with FakeController(ray_token=TOKEN) as controller:
        made = World(tmp_path_factory.mktemp("world"), controller.url)
        try:
            made.fleet.join("a")
            yield made
        finally:
            made.close()
    wait_until(lambda: not made.pids(), "all processes to end")
    assert not made.ray_dir.exists()
    assert len(made.ports()) >= 14
    assert all(is_free(port) for port in made.ports())
    assert Path("/tmp/ray").exists() is had_ray_dir
    made.ray_dir.parent.rmdir()


def test_all_that_start_together_become_one_cluster(world: World) -> None:
    provider_id, instance_id = world.rent()

    head = world.wait_for_node(is_head=True)
    host = world.wait_for_node(host="a")
    rented = world.wait_for_node(instance_id=instance_id)

    assert head.labels.items() >= {"site": "onprem", "role": "head"}.items()
    assert host.labels["site"] == "onprem"
    assert (host.total["CPU"], host.total["GPU"]) == (2, 4)
    assert rented.labels.items() >= {"site": "cloud", "accelerator": "A100"}.items()
    assert rented.total["GPU"] == 4
    assert rented.total["accelerator_type:A100"] == 1
    assert rented.total["memory"] == 2 * 2**30
    world.wait_for_start(instance_id)
    wait_until(lambda: world.fleet.probe("a").state is HostState.JOINED, "the host to start")
    item = listed(world.provider)[provider_id]
    assert (item.state, item.problem) == (CloudState.RUNNING, "")
    end(world.provider, provider_id)
    world.wait_for_death(instance_id)


def test_a_drained_node_ends_and_its_instance_waits_to_be_returned(world: World) -> None:
    provider_id, instance_id = world.rent()
    rented = world.wait_for_node(instance_id=instance_id)
    world.wait_for_start(instance_id)

    def drain() -> bool:
        return world.cluster.drain(
            rented.node_id, kind=DrainKind.IDLE, deadline_at_s=time.time() + 60, message="test"
        ).is_accepted

    wait_until(drain, "Ray to accept the drain")

    problem = wait_until(lambda: listed(world.provider)[provider_id].problem, "its end")
    assert problem == "Ray ended by itself: raylet ended with exit code 0"
    assert listed(world.provider)[provider_id].state is CloudState.RUNNING
    world.wait_for_death(instance_id)
    end(world.provider, provider_id)


def test_a_raylet_killed_at_work_is_reported_and_its_instance_can_be_returned(
    world: World,
) -> None:
    provider_id, instance_id = world.rent()
    world.wait_for_node(instance_id=instance_id)
    raylet_pid = world.wait_for_start(instance_id)

    os.kill(raylet_pid, signal.SIGKILL)

    problem = wait_until(lambda: listed(world.provider)[provider_id].problem, "its end")
    assert problem == "Ray ended by itself: raylet was killed by SIGKILL"
    world.wait_for_death(instance_id)
    assert world.fleet.probe("a").state is HostState.JOINED
    end(world.provider, provider_id)
