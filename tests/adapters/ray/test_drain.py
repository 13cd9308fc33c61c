"""What draining does on a real Ray."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.adapters.ray.cluster import RayCluster
from hybrid.core.errors import ClusterError
from hybrid.core.models import NodeStatus
from hybrid.core.ports import DrainKind
from tests.adapters.ray.looking import node_of, view_when
from tests.ray_cluster import LocalRay, wait_until

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture
def extra_nodes(local_ray: LocalRay, quiet: RayCluster) -> Iterator[None]:
    """Two more rented nodes, for tests that end them."""
    names = ("extra-1", "extra-2")
    for name in names:
        local_ray.launch_node(name, labels="site=extra", instance_id=f"i-{name}", gpus=1)
    try:
        local_ray.wait()
        yield
    finally:
        for name in names:
            local_ray.kill(name)


def test_drain_ends_an_idle_node_and_lets_a_busy_one_finish(
    local_ray: LocalRay, quiet: RayCluster, extra_nodes: None, tmp_path: Path
) -> None:
    # One test for the whole story, because each node costs seconds to start.
    started, gate = tmp_path / "started", tmp_path / "gate"
    code = f"""
        import pathlib
        @ray.remote(num_gpus=1, num_cpus=0, max_retries=0)
        def task():
            node_id = ray.get_runtime_context().get_node_id()
            pathlib.Path({str(started)!r}).write_text(node_id)
            while not pathlib.Path({str(gate)!r}).exists():
                time.sleep(0.1)
            return node_id
        ref = task.options(label_selector={{"site": "extra"}}).remote()
        say(ray.get(ref))
        time.sleep(600)
    """
    with local_ray.driver(code) as driver:
        wait_until(lambda: started.exists() and started.read_text(), "the task to run")
        idle_s = node_of(quiet.view(), "i-cloud-1").idle_s
        nodes = [node for node in quiet.view().nodes if node.labels.get("site") == "extra"]
        busy, idle = sorted(nodes, key=lambda node: node.node_id != started.read_text())

        refused = quiet.drain(busy.node_id, kind=DrainKind.IDLE, deadline_at_s=0, message="test")
        accepted = quiet.drain(idle.node_id, kind=DrainKind.IDLE, deadline_at_s=0, message="test")
        forced = quiet.drain(
            busy.node_id, kind=DrainKind.BUSY, deadline_at_s=time.time() + 60, message="test"
        )

        assert not refused.is_accepted
        assert "no longer idle" in refused.message
        assert accepted.is_accepted
        assert forced.is_accepted
        view_when(
            quiet,
            lambda view: node_of(view, idle.instance_id).status is NodeStatus.DEAD,
            "the idle node to be dead",
        )
        draining = view_when(
            quiet,
            lambda view: node_of(view, busy.instance_id).status is NodeStatus.DRAINING,
            "the busy node to be draining",
        )
        assert node_of(draining, busy.instance_id).idle_s is None
        gate.touch()
        assert driver.says() == busy.node_id
    view = view_when(
        quiet,
        lambda view: node_of(view, busy.instance_id).status is NodeStatus.DEAD,
        "the drained node to leave by itself",
    )
    bystander = node_of(view, "i-cloud-1")
    assert idle_s is not None
    assert bystander.idle_s is not None
    assert bystander.idle_s > idle_s  # Ray itself starts it anew


def test_dead_nodes_leave_the_view_after_a_while(local_ray: LocalRay, quiet: RayCluster) -> None:
    short = RayCluster(local_ray.address, local_ray.token, dead_nodes_shown_s=0.0)

    nodes = short.view().nodes

    short.close()
    assert len(nodes) == 3
    assert NodeStatus.DEAD not in {node.status for node in nodes}


def test_drain_of_something_that_is_no_node_id_reaches_no_head(quiet: RayCluster) -> None:
    # Ray's control service aborts on an id of the wrong length (2.60.0).
    with pytest.raises(ClusterError, match="is not a Ray node id"):
        quiet.drain("abcd", kind=DrainKind.BUSY, deadline_at_s=0, message="test")

    assert quiet.view().nodes
