"""A spot instance is taken back while a real Ray works on it: it is drained within the notice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.models import CloudState, Node, NodeStatus
from hybrid.node import notice
from tests.node.box import wait_until
from tests.node.controller import FakeController
from tests.providers.contract import end, listed
from tests.providers.test_local_ray import World
from tests.ray_cluster import TOKEN

pytestmark = [pytest.mark.ray, pytest.mark.slow]

NOTICE_S = 60.0

# A driver: a task holds the node until a file appears; then another one is submitted for it.
DRIVER = """
import json, sys, time
from pathlib import Path
import ray
address, folder = sys.argv[1], Path(sys.argv[2])
ray.init(address=address, log_to_driver=False, logging_level="ERROR")

@ray.remote(num_cpus=1, label_selector={"market": "spot"}, max_retries=0)
def hold(name):
    (folder / f"{name}-runs").touch()
    while not (folder / f"{name}-may-end").exists():
        time.sleep(0.05)
    return name

def wait(path):
    while not (folder / path).exists():
        time.sleep(0.05)

first = hold.remote("first")
wait("drained")
second = hold.remote("second")
draining = ray._private.state.state.get_draining_nodes()
(folder / "draining.tmp").write_text(json.dumps(dict(draining)))
(folder / "draining.tmp").rename(folder / "draining")
(folder / "result").write_text(ray.get(first))
wait("dead")
death = {n["NodeID"]: n["DeathReasonMessage"] + " " + str(n["DeathReason"]) for n in ray.nodes()}
(folder / "death.tmp").write_text(json.dumps(death))
(folder / "death.tmp").rename(folder / "death")
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with FakeController(ray_token=TOKEN) as controller:
        made = World(tmp_path, controller.url, use_spot=True)
        try:
            yield made
        finally:
            made.close()
    wait_until(lambda: not made.pids(), "all processes to end")
    made.ray_dir.parent.rmdir()


def test_a_machine_that_is_taken_back_is_drained_by_its_own_node(
    world: World, tmp_path: Path
) -> None:
    provider_id, instance_id = world.rent()
    rented = world.wait_for_node(instance_id=instance_id)
    world.wait_for_start(instance_id)
    folder = world.folder / "local" / "instances" / instance_id
    signs = tmp_path / "signs"
    signs.mkdir()
    with driver(world, signs):
        wait_until((signs / "first-runs").exists, "the task to run", 60.0)

        told_at_s = time.time()
        give_notice(folder, at_s=told_at_s + NOTICE_S)

        wait_until(lambda: status_of(world, instance_id) is NodeStatus.DRAINING, "the drain", 30.0)
        took_s = time.time() - told_at_s
        (signs / "drained").touch()
        draining = read(signs / "draining")
        said = json.loads((folder / "status.json").read_text())
        # Ray places nothing on it any more, for as long as the first task runs.
        time.sleep(3)
        assert not (signs / "second-runs").exists()
        assert status_of(world, instance_id) is NodeStatus.DRAINING
        (signs / "first-may-end").touch()

        wait_until((signs / "result").exists, "the task to end", 30.0)
        world.wait_for_death(instance_id)
        (signs / "dead").touch()
        death = read(signs / "death")

    assert took_s < NOTICE_S / 2
    assert draining[rented.node_id] == pytest.approx((told_at_s + NOTICE_S) * 1000, abs=2500)
    assert said["phase"] == "running"
    assert "the cloud takes this machine back at" in said["problem"]
    assert (signs / "result").read_text() == "first"
    assert not (signs / "second-runs").exists()
    # Ray's own enum: AUTOSCALER_DRAIN_PREEMPTED
    message, _, reason = death[rented.node_id].rpartition(" ")
    assert reason == "3"
    assert message == said["problem"].partition(";")[0]
    problem = wait_until(lambda: listed(world.provider)[provider_id].problem, "its end")
    assert problem.startswith("the cloud takes this machine back at ")
    assert listed(world.provider)[provider_id].state is CloudState.RUNNING
    end(world.provider, provider_id)


def driver(world: World, signs: Path) -> Killed:
    """Run the driver; kill it at the end."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    env = {
        **kept,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    words = [sys.executable, "-c", DRIVER, world.head.address, str(signs)]
    return Killed(subprocess.Popen(words, env=env))


class Killed:
    """A process that does not outlive its block."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def give_notice(folder: Path, *, at_s: float) -> None:
    draft = folder / ".notice"
    draft.write_text(f"{at_s:.0f} aws-terminate")
    draft.rename(folder / "notice")
    assert notice.read(folder / "notice")


def status_of(world: World, instance_id: str) -> NodeStatus | None:
    node: Node | None = world.node(instance_id=instance_id)
    return node.status if node else None


def read(path: Path) -> dict[str, Any]:
    wait_until(path.exists, str(path), 30.0)
    content: dict[str, Any] = json.loads(path.read_text())
    return content
