"""The adapter, connected to the shared cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hybrid.adapters.ray.cluster import RayCluster
from hybrid.adapters.ray.jobs import RayJobs
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
