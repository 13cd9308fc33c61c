"""The connection to Ray's control service."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from hybrid.adapters.ray.gcs import Gcs, _wire
from hybrid.core.errors import ClusterError
from hybrid.core.ports import DrainKind
from tests.ray_cluster import LocalRay


def test_the_messages_are_loaded_without_ray() -> None:
    code = (
        "import sys; from hybrid.adapters.ray.cluster import RayCluster\n"
        "assert 'grpc' not in sys.modules\n"
        "from hybrid.core.errors import ClusterError\n"
        "try: RayCluster('127.0.0.1:1', 'token').view()\n"
        "except ClusterError: pass\n"
        "assert 'ray' not in sys.modules and 'grpc' in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_ray_without_our_messages_is_said() -> None:
    with pytest.raises(ClusterError, match="has no usable no_such_pb2"):
        _wire("no_such_pb2")


@pytest.mark.parametrize("node_id", ["", "abcd", "xyz", "ab" * 27, "ab" * 29])
def test_drain_refuses_what_would_abort_the_head(node_id: str) -> None:
    gcs = Gcs("127.0.0.1:1", "token")

    with pytest.raises(ClusterError, match="is not a Ray node id"):
        gcs.drain(node_id, kind=DrainKind.BUSY, deadline_at_s=0.0, message="")


def test_another_grpc_server_is_no_head() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    gcs = Gcs(f"127.0.0.1:{port}", "token", timeout_s=2.0)

    with pytest.raises(ClusterError, match="answered with UNIMPLEMENTED"):
        gcs.state()
    gcs.close()
    server.stop(None).wait()


@pytest.mark.ray
@pytest.mark.slow
def test_a_job_that_is_not_there_has_no_supervisor(local_ray: LocalRay) -> None:
    gcs = Gcs(local_ray.address, local_ray.token)

    assert gcs.end_job_supervisor("nobody") is False
    gcs.close()


def test_a_connection_that_another_thread_closed_is_opened_anew() -> None:
    gcs = Gcs("127.0.0.1:1", "token", timeout_s=2.0)
    gcs._open().close()

    with pytest.raises(ClusterError, match="the next call opens a new one"):
        gcs.state()
    with pytest.raises(ClusterError, match="cannot be reached"):
        gcs.state()
    gcs.close()
