"""Nodes die while they work: Ray runs their tasks again, and the loop replaces what is needed."""

from __future__ import annotations

import pytest

from hybrid.core.models import Instance, InstanceState
from tests.e2e.deployment import Deployment, kill

pytestmark = [pytest.mark.ray, pytest.mark.slow]

# One at a time: a replacement can only come when the dead one's reservation was freed.
CONFIG = {"budget": {"nodes": 1, "gpus": 2}}


def working(cluster: Deployment) -> Instance:
    """Return the instance that a task runs on; it is the only one."""
    cluster.wait_until(lambda: cluster.started("cloud"), "the task to start in the cloud")
    (row,) = cluster.live_rows()
    assert [facts["instance_id"] for facts in cluster.started()] == [row.instance_id]
    return row


def assert_replaced(cluster: Deployment, row: Instance) -> Instance:
    """Assert that the task starts again on another instance; return the dead one's row."""
    cluster.wait_until(lambda: len(cluster.started("cloud")) == 2, "the task to start again")
    dead = next(r for r in cluster.rows() if r.instance_id == row.instance_id)
    (other,) = cluster.live_rows()
    assert {facts["instance_id"] for facts in cluster.started()} == {
        row.instance_id,
        other.instance_id,
    }
    assert dead.state is InstanceState.TERMINATED
    return dead


def test_an_instance_whose_raylet_is_killed_is_closed_and_replaced(cluster: Deployment) -> None:
    job = cluster.submit("site=cloud")
    row = working(cluster)

    assert kill([cluster.raylet_pid_of(row.instance_id)])

    dead = assert_replaced(cluster, row)
    said = [
        e.message for e in cluster.events("instance_terminating") if e.subject == dead.instance_id
    ]
    assert "raylet was killed by SIGKILL" in said[0]
    assert not cluster.pids_of(row.instance_id)
    cluster.open_gate()
    assert job.wait().value == "succeeded"
    cluster.wait_until_home()
    assert cluster.status().budget.now.node_count == 0


def test_an_instance_that_is_killed_whole_is_closed_and_replaced(cluster: Deployment) -> None:
    job = cluster.submit("site=cloud")
    row = working(cluster)

    # all at once, or those that look after the others would end them gently
    assert len(kill(cluster.pids_of(row.instance_id))) > 3

    assert_replaced(cluster, row)
    cluster.open_gate()
    assert job.wait().value == "succeeded"
    cluster.wait_until_home()
    assert all(item.cost_usd > 0 for item in cluster.client.cost().instances)


def test_a_dead_instance_that_nobody_needs_any_more_is_not_replaced(cluster: Deployment) -> None:
    before = len(cluster.rows())
    job = cluster.submit("site=cloud")
    row = working(cluster)
    job.cancel()
    assert job.wait().value == "cancelled"

    kill(cluster.pids_of(row.instance_id))

    cluster.wait_until_home()
    assert len(cluster.rows()) == before + 1
    assert cluster.status().demand == ()


def test_a_host_that_is_killed_is_started_again_and_its_work_with_it(cluster: Deployment) -> None:
    job = cluster.submit("site=onprem")
    cluster.wait_until(cluster.started, "the task to start")
    before = cluster.pid_of("home-1")
    restarts = len(cluster.events("base_restarted"))

    kill(cluster.pids_of("home-1"))

    cluster.wait_until(lambda: len(cluster.started("onprem")) == 2, "the task to start again")
    assert cluster.pid_of("home-1") != before
    assert [e.subject for e in cluster.events("base_restarted")[restarts:]] == ["home-1"]
    assert "killed" in cluster.events("base_restarted")[-1].message
    cluster.open_gate()
    assert job.wait().value == "succeeded"
    assert cluster.rows() == [row for row in cluster.rows() if row.is_ended]


def test_a_head_that_is_killed_with_its_host_is_started_again_and_takes_work(
    cluster: Deployment,
) -> None:
    """Alone it would be the same, but Ray's nodes take a minute to give up an old head."""
    before = {name: cluster.pid_of(name) for name in ("head", "home-1")}

    kill([*cluster.pids_of("head"), *cluster.pids_of("home-1")])

    cluster.wait_until(
        lambda: {"head", "home-1"} <= {e.subject for e in cluster.events("base_restarted")[-2:]},
        "both to be started again",
    )
    job = cluster.submit("site=onprem")
    cluster.wait_until(cluster.started, "a task to start")
    assert before["head"] != cluster.pid_of("head")
    assert before["home-1"] != cluster.pid_of("home-1")
    assert [n.name for n in cluster.status().nodes] == ["head", "home-1"]
    cluster.open_gate()
    assert job.wait().value == "succeeded"
