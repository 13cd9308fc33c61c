"""What the adapter relies on, held against a real Ray."""

from __future__ import annotations

import socket

import pytest

from hybrid.adapters.ray.cluster import RayCluster
from hybrid.core.errors import ClusterError
from hybrid.core.models import ClusterView, LabelConstraint, NodeStatus, Spread
from tests.adapters.ray.looking import node_of, view_when
from tests.ray_cluster import FIRST_PORT, LocalRay

pytestmark = [pytest.mark.ray, pytest.mark.slow]

ONPREM = LabelConstraint(key="site", values=("onprem",))
CLOUD = LabelConstraint(key="site", values=("cloud",))
TIMEOUT_S = 1.5


def counts_of(view: ClusterView) -> dict[tuple[tuple[str, float], ...], int]:
    return {tuple(demand.shape.items()): demand.count for demand in view.demands}


# --- demand -------------------------------------------------------------------------------


def test_view_counts_waiting_tasks_and_actors_by_shape_and_place(
    local_ray: LocalRay, quiet: RayCluster
) -> None:
    code = """
        @ray.remote(num_gpus=16, num_cpus=0)
        def task(): pass
        @ray.remote(num_gpus=16, num_cpus=0)
        class Actor: pass
        onprem, cloud = {"site": "onprem"}, {"site": "cloud", "zone": "!in(z8,z9)"}
        refs = [task.remote() for _ in range(3)] + [Actor.remote() for _ in range(2)]
        refs += [task.options(label_selector=onprem).remote() for _ in range(4)]
        fallback = [{"label_selector": cloud}, {"label_selector": {}}]
        refs += [
            task.options(label_selector=onprem, fallback_strategy=fallback).remote()
            for _ in range(5)
        ]
        refs.append(task.options(num_gpus=0, label_selector={"site": "moon"}).remote())
        say("submitted")
        time.sleep(600)
    """
    with local_ray.driver(code) as driver:
        driver.says()

        view = view_when(
            quiet, lambda view: sum(demand.count for demand in view.demands) == 15, "15 demands"
        )

    not_z8_z9 = LabelConstraint(key="zone", values=("z8", "z9"), is_negated=True)
    assert {
        (tuple(demand.shape.items()), demand.selectors): demand.count for demand in view.demands
    } == {
        ((("GPU", 16.0),), ()): 5,
        ((("GPU", 16.0),), ((ONPREM,),)): 4,
        ((("GPU", 16.0),), ((ONPREM,), (CLOUD, not_z8_z9), ())): 5,
        ((), ((LabelConstraint(key="site", values=("moon",)),),)): 1,
    }
    assert all(demand.waiting_s is None for demand in view.demands)


def test_view_is_exact_for_300_shapes(local_ray: LocalRay, quiet: RayCluster) -> None:
    code = """
        @ray.remote(num_gpus=16, num_cpus=0)
        def task(): pass
        refs = [task.options(memory=(i % 300 + 1) * 1_000_000).remote() for i in range(900)]
        say("submitted")
        time.sleep(600)
    """
    with local_ray.driver(code) as driver:
        driver.says()

        view = view_when(
            quiet, lambda view: sum(demand.count for demand in view.demands) == 900, "900 demands"
        )

    assert counts_of(view) == {
        (("GPU", 16.0), ("memory", number * 1e6)): 3 for number in range(1, 301)
    }


def test_view_shows_gangs_but_not_the_work_that_waits_for_them(
    local_ray: LocalRay, quiet: RayCluster
) -> None:
    code = """
        from ray.util import placement_group
        from ray.util.scheduling_strategies import (
            NodeAffinitySchedulingStrategy,
            PlacementGroupSchedulingStrategy,
        )
        selectors = [{"site": "onprem"}, {"site": "cloud", "zone": "in(z2,z1)"}]
        spread = placement_group(
            [{"GPU": 16}, {"GPU": 8, "CPU": 1}], "STRICT_SPREAD", bundle_label_selector=selectors
        )
        packed = placement_group([{"GPU": 16}] * 2, "STRICT_PACK")
        placed = placement_group([{"GPU": 1}], bundle_label_selector=[{"site": "onprem"}])
        assert placed.wait(30)
        @ray.remote(num_gpus=1, num_cpus=0)
        def task(): time.sleep(600)
        refs = []
        for strategy in (
            PlacementGroupSchedulingStrategy(placed),
            PlacementGroupSchedulingStrategy(placed, placement_group_bundle_index=0),
            PlacementGroupSchedulingStrategy(packed),
        ):
            refs += [task.options(scheduling_strategy=strategy).remote() for _ in range(3)]
        (node_id,) = [n["NodeID"] for n in ray.nodes() if n["Labels"].get("zone") == "z1"]
        pinned = NodeAffinitySchedulingStrategy(node_id, soft=False)
        on_node = {"ray.io/node-id": node_id}
        for options in ({"scheduling_strategy": pinned}, {"label_selector": on_node}):
            refs += [task.options(num_gpus=4, **options).remote() for _ in range(2)]
        refs.append(task.options(num_gpus=64).remote())  # last, so that all others are there too
        say({"spread": spread.id.hex(), "packed": packed.id.hex()})
        time.sleep(600)
    """
    with local_ray.driver(code) as driver:
        ids = driver.says()

        view = view_when(
            quiet, lambda view: view.demands and len(view.gangs) == 2, "gangs and the last task"
        )

    gang_by_id = {gang.gang_id: gang for gang in view.gangs}
    spread, packed = gang_by_id[ids["spread"]], gang_by_id[ids["packed"]]
    z1_z2 = LabelConstraint(key="zone", values=("z1", "z2"))
    assert counts_of(view) == {(("GPU", 64.0),): 1}
    assert (spread.spread, packed.spread) == (Spread.STRICT_SPREAD, Spread.STRICT_PACK)
    assert [bundle.shape for bundle in packed.bundles] == [{"GPU": 16.0}, {"GPU": 16.0}]
    assert [(bundle.shape, bundle.selectors) for bundle in spread.bundles] == [
        ({"GPU": 16.0}, ((ONPREM,),)),
        ({"CPU": 1.0, "GPU": 8.0}, ((CLOUD, z1_z2),)),
    ]


# --- nodes --------------------------------------------------------------------------------


def test_view_names_nodes_and_what_they_have(local_ray: LocalRay, quiet: RayCluster) -> None:
    nodes = [node for node in quiet.view().nodes if node.status is not NodeStatus.DEAD]

    (head,) = [node for node in nodes if node.is_head]
    (own,) = [node for node in nodes if node.host == "onprem-1"]
    rented = node_of(quiet.view(), "i-cloud-1")
    assert len(nodes) == 3
    assert (head.total["CPU"], head.labels["role"]) == (1.0, "head")
    assert (own.instance_id, own.labels["site"], own.total["GPU"]) == ("", "onprem", 4.0)
    assert rented.host == ""
    assert (rented.labels["site"], rented.labels["zone"]) == ("cloud", "z1")
    assert set(rented.total) == {"CPU", "GPU", "memory", "object_store_memory"}


def test_view_tells_idle_from_busy(local_ray: LocalRay, quiet: RayCluster) -> None:
    idle = node_of(quiet.view(), "i-cloud-1")
    code = """
        @ray.remote(num_gpus=4, num_cpus=0)
        def task(): time.sleep(600)
        ref = task.options(label_selector={"site": "cloud"}).remote()
        time.sleep(600)
    """
    with local_ray.driver(code):
        view = view_when(
            quiet,
            lambda view: node_of(view, "i-cloud-1").status is NodeStatus.RUNNING,
            "a busy node",
        )

    busy = node_of(view, "i-cloud-1")
    assert idle.status is NodeStatus.IDLE
    assert idle.idle_s is not None
    assert idle.available["GPU"] == 4.0
    assert busy.idle_s is None
    assert busy.available["GPU"] == 0.0
    assert any("GPU" in words for words in busy.activity)


# --- trouble ------------------------------------------------------------------------------


def test_a_wrong_token_is_said_at_once(local_ray: LocalRay) -> None:
    stranger = RayCluster(local_ray.address, "another-token-0123456789abcdef0123456789")

    with pytest.raises(ClusterError, match="refused our token"):
        stranger.view()


def test_a_closed_port_is_said_at_once() -> None:
    cluster = RayCluster("127.0.0.1:1", "token", timeout_s=TIMEOUT_S)

    with pytest.raises(ClusterError, match=r"127\.0\.0\.1:1 cannot be reached"):
        cluster.view()


def test_a_silent_head_is_given_up_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # connects, and never answers
        address = f"127.0.0.1:{server.getsockname()[1]}"
        cluster = RayCluster(address, "token", timeout_s=TIMEOUT_S)

        with pytest.raises(ClusterError, match=r"did not answer within 1\.5 s"):
            cluster.view()


def test_view_finds_a_head_that_was_restarted() -> None:
    ray = LocalRay(first_port=FIRST_PORT + 500)
    cluster = RayCluster(ray.address, ray.token, timeout_s=TIMEOUT_S)
    try:
        ray.launch_head(has_dashboard=False)
        ray.wait()
        (before,) = cluster.view().nodes
        ray.kill("head")
        with pytest.raises(ClusterError, match="cannot be reached"):
            cluster.view()
        ray.launch_head(has_dashboard=False)
        ray.wait()

        (after,) = cluster.view().nodes
    finally:
        cluster.close()
        ray.close()

    assert after.is_head
    assert after.node_id != before.node_id
