"""The controller is killed with -9; the next one finds everything again, once."""

from __future__ import annotations

import os

import pytest

from hybrid.core.models import Instance, InstanceState
from tests.e2e.deployment import POOL, Deployment

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CONFIG = {"clouds": {"any_of": [{**POOL, "boot_delay": "3s"}]}}


def new_rows(cluster: Deployment, before: list[Instance]) -> list[Instance]:
    """Return the ledger's rows that were not there `before`."""
    known = {row.instance_id for row in before}
    return [row for row in cluster.rows() if row.instance_id not in known]


def assert_no_orphan_and_no_double(cluster: Deployment) -> None:
    """Assert that every machine that was ever rented is one row's, and that all have ended."""
    assert sorted(cluster.records()) == sorted(row.instance_id for row in cluster.rows())
    assert {row.state for row in cluster.rows()} <= {InstanceState.TERMINATED}


def test_a_controller_killed_at_rest_comes_back_to_the_same_cluster(cluster: Deployment) -> None:
    job = cluster.submit("site=onprem")
    cluster.wait_until(cluster.started, "the task to start")
    bases = {name: cluster.pid_of(name) for name in ("head", "home-1")}
    killed = cluster.controller_pid

    cluster.kill_controller()
    gone = cluster.hybrid("status", code=3)
    # what a restart of the machine brings: another process, this one, has its number
    record = cluster.state_dir / "controller.json"
    record.write_text(record.read_text().replace(f'"pid": {killed}', f'"pid": {os.getpid()}'))
    assert cluster.controller_pid == os.getpid()
    still_gone = cluster.hybrid("status", code=3)
    cluster.up()

    assert gone.err == still_gone.err
    assert "the controller of e2e died" in gone.err
    assert "`hybrid up` goes on, `hybrid down` cleans up" in gone.err
    assert {name: cluster.pid_of(name) for name in bases} == bases
    cluster.open_gate()
    assert job.wait().value == "succeeded"
    assert len(cluster.started()) == 1
    assert_no_orphan_and_no_double(cluster)


def test_a_controller_killed_in_a_launch_takes_over_what_it_launched(cluster: Deployment) -> None:
    before = cluster.rows()
    job = cluster.submit("site=cloud")
    cluster.wait_until(lambda: len(cluster.records()) > len(before), "a machine to be rented")

    cluster.kill_controller()
    (row,) = new_rows(cluster, before)
    cluster.up()

    assert row.state in (InstanceState.REQUESTED, InstanceState.BOOTING)
    cluster.wait_until(cluster.started, "the task to start")
    assert [facts["instance_id"] for facts in cluster.started()] == [row.instance_id]
    cluster.open_gate()
    assert job.wait().value == "succeeded"
    cluster.wait_until_home()
    assert len(new_rows(cluster, before)) == 1
    assert_no_orphan_and_no_double(cluster)


def test_a_controller_killed_in_a_drain_drains_on_to_the_same_deadline(
    cluster: Deployment,
) -> None:
    before = cluster.rows()
    job = cluster.submit("site=cloud")
    cluster.wait_until(cluster.started, "the task to start")
    (row,) = new_rows(cluster, before)
    cluster.hybrid("drain", row.instance_id, "--deadline", "10m", "-y")
    cluster.wait_until(
        lambda: cluster.live_rows()[0].state is InstanceState.DRAINING, "the drain to begin"
    )
    (draining,) = cluster.live_rows()

    cluster.kill_controller()
    cluster.up()

    cluster.wait_until(lambda: cluster.status().nodes, "a first look")
    (afterwards,) = cluster.live_rows()
    assert afterwards.state is InstanceState.DRAINING
    assert afterwards.deadline_at_s == draining.deadline_at_s
    cluster.open_gate()
    assert job.wait().value == "succeeded"
    cluster.wait_until_home()
    assert len(cluster.started()) == 1
    assert len(new_rows(cluster, before)) == 1
    assert_no_orphan_and_no_double(cluster)


def test_instances_of_a_controller_that_never_comes_back_end_themselves_by_their_lease(
    cluster: Deployment,
) -> None:
    cluster.stop_controller()
    cluster.configure(**CONFIG, lease={"length": "8s", "renew": "2s"})
    cluster.up()
    before = cluster.rows()
    cluster.submit("site=cloud")
    cluster.wait_until(cluster.started, "the task to start")
    (row,) = new_rows(cluster, before)
    bases = {name: cluster.pid_of(name) for name in ("head", "home-1")}

    cluster.kill_controller()
    cluster.wait_until(lambda: not cluster.pids_of(row.instance_id), "the lease to end it")

    assert [r.instance_id for r in cluster.live_rows()] == [row.instance_id]
    assert all(pid in cluster.processes() for pid in bases.values())
    assert {name: cluster.pid_of(name) for name in bases} == bases
    done = cluster.down()
    assert f"instance {row.instance_id}" in done.out
    cluster.assert_nothing_left()
    assert_no_orphan_and_no_double(cluster)
