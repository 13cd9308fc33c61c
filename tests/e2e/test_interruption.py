"""The cloud takes a spot instance back at work: it is drained, and its work runs elsewhere."""

from __future__ import annotations

import json

import pytest

from hybrid.core.models import Instance, InstanceState
from tests.e2e.deployment import POOL, Deployment

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SPOT = {
    **POOL,
    "use_spot": True,
    "usd_per_hour": 0.9,
    "fail": {"interrupt_after": "25s", "notice": "10s"},
}
CONFIG = {"clouds": {"any_of": [SPOT, POOL]}, "budget": {"nodes": 2, "gpus": 4}}


def test_a_spot_instance_that_is_taken_back_is_drained_and_its_work_runs_again(
    cluster: Deployment,
) -> None:
    job = cluster.submit("site=cloud")
    cluster.wait_until(lambda: cluster.started("cloud"), "the task to start in the cloud")
    (row,) = cluster.live_rows()
    folder = cluster.state_dir / "providers/local/instances" / row.instance_id

    def problem() -> str:
        return str(json.loads((folder / "status.json").read_text())["problem"])

    cluster.wait_until(lambda: "Ray drains the node" in problem(), "the drain")
    told = (folder / "notice").read_text()

    def is_draining() -> bool:
        node = cluster.node(row.instance_id)
        return node is not None and node.state == "draining"

    cluster.wait_until(is_draining, "the status to show it")
    # The task holds its GPUs beyond the deadline, so it dies with the machine.
    cluster.wait_until(lambda: len(cluster.started("cloud")) == 2, "the task to start again")
    first, second = sorted(
        cluster.started("cloud"), key=lambda facts: facts["instance_id"] != row.instance_id
    )
    cluster.open_gate()

    assert job.wait().value == "succeeded"
    assert told.endswith(" local-interrupt")
    assert first["instance_id"] == row.instance_id
    assert second["instance_id"] != row.instance_id

    def ended() -> Instance:
        return next(r for r in cluster.rows() if r.instance_id == row.instance_id)

    cluster.wait_until(lambda: ended().state is InstanceState.TERMINATED, "its end")
    reason = ended().drain_reason
    assert reason is not None
    assert reason.code == "interrupted"
    assert not cluster.pids_of(row.instance_id)
    cluster.wait_until_home()
    # It worked until then: nothing is wrong with the offer.
    assert cluster.client.plan().resting == ()
    assert cluster.status().budget.now.node_count == 0
