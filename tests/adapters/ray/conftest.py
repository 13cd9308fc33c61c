"""The adapter, connected to the shared cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hybrid.adapters.ray.cluster import RayCluster
from hybrid.adapters.ray.jobs import RayJobs
from hybrid.core.models import NodeStatus
from tests.adapters.ray.looking import view_when
from tests.ray_cluster import LocalRay


@pytest.fixture
def cluster(local_ray: LocalRay) -> Iterator[RayCluster]:
    cluster = RayCluster(local_ray.address, local_ray.token)
    yield cluster
    cluster.close()


@pytest.fixture
def jobs(local_ray: LocalRay) -> Iterator[RayJobs]:
    jobs = RayJobs(local_ray.dashboard_url, local_ray.token, address=local_ray.address)
    yield jobs
    jobs.close()


@pytest.fixture
def quiet(cluster: RayCluster) -> RayCluster:
    """The cluster, once nothing of the last test is left in it."""
    view_when(
        cluster,
        lambda view: (
            not view.demands
            and not view.gangs
            and all(node.status in (NodeStatus.IDLE, NodeStatus.DEAD) for node in view.nodes)
        ),
        "the cluster to be quiet",
    )
    return cluster
