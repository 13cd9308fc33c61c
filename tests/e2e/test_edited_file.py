"""An edited configuration is applied by `hybrid up`: a new controller, and the nodes stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hybrid.core.models import JobState
from tests.e2e.deployment import HOST, Deployment

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SECOND: Mapping[str, Any] = {**HOST, "name": "home-2"}
CONFIG: Mapping[str, Any] = {"onprem": {"hosts": [HOST, SECOND]}}


def test_a_host_that_was_taken_out_ends_and_all_else_goes_on(cluster: Deployment) -> None:
    job = cluster.submit("site=cloud")
    cluster.wait_until(cluster.started, "the task to start")
    (row,) = cluster.live_rows()
    before = {name: cluster.pid_of(name) for name in ("head", "home-1", row.instance_id)}
    old_pid = cluster.controller_pid
    cluster.configure(onprem={"hosts": [HOST]}, budget={"nodes": 1})

    unasked = cluster.hybrid("up", str(cluster.config), code=2)
    done = cluster.up()

    assert "onprem.hosts[home-2]" in unasked.out
    assert "pass -y" in unasked.err
    assert "Cluster e2e is up." in done.out
    assert cluster.controller_pid != old_pid
    assert {name: cluster.pid_of(name) for name in before} == before
    assert cluster.node("home-2") is None
    assert cluster.status().budget.caps.node_count == 1
    cluster.open_gate()
    assert job.wait() is JobState.SUCCEEDED
