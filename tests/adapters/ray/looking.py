"""Looking at a real cluster until it is as wanted."""

from __future__ import annotations

from collections.abc import Callable

from hybrid.adapters.ray.cluster import RayCluster
from hybrid.core.models import ClusterView, Node
from tests.ray_cluster import wait_until


def view_when(
    cluster: RayCluster, is_ready: Callable[[ClusterView], object], what: str
) -> ClusterView:
    """Return the first view for which `is_ready` holds."""
    views: list[ClusterView] = []

    def look() -> object:
        views.append(cluster.view())
        return is_ready(views[-1])

    try:
        wait_until(look, what)
    except TimeoutError as err:
        raise AssertionError(f"{err}; last seen: {views[-1]}") from err
    return views[-1]


def node_of(view: ClusterView, instance_id: str) -> Node:
    (node,) = [node for node in view.nodes if node.instance_id == instance_id]
    return node
