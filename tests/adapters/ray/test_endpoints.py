"""Where nodes tell their metrics, on a real Ray."""

from __future__ import annotations

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.metrics.exposition import samples
from hybrid.adapters.metrics.fetch import Fetcher
from hybrid.adapters.ray.endpoints import MetricsEndpoints, url_of
from hybrid.core.errors import ClusterError
from tests.ray_cluster import LocalRay, wait_until


def test_an_address_of_the_sixth_version_is_put_in_brackets() -> None:
    assert url_of("10.0.0.5", 8080) == "http://10.0.0.5:8080/metrics"
    assert url_of("fd00::5", 8080) == "http://[fd00::5]:8080/metrics"


def test_a_head_that_is_away_is_said() -> None:
    endpoints = MetricsEndpoints("127.0.0.1:1", "", timeout_s=2.0)

    with pytest.raises(ClusterError, match="cannot be reached"):
        endpoints.urls()
    endpoints.close()


@pytest.mark.ray
@pytest.mark.slow
def test_every_living_node_has_a_page_that_is_read_without_a_token(local_ray: LocalRay) -> None:
    endpoints = MetricsEndpoints(local_ray.address, local_ray.token)
    fetcher = Fetcher(SystemClock(), timeout_s=5.0)
    urls = endpoints.urls()

    def all_tell() -> bool:
        pages = [fetcher.get(url).decode() for url in urls]
        return all(any(samples(page, {"ray_node_cpu_count"})) for page in pages)

    assert len(urls) == len(local_ray.nodes)
    wait_until(all_tell, "the figures of every node")
    endpoints.close()
    fetcher.close()
