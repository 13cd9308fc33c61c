"""Starting and ending a cluster, and everything that can cut in between."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from hybrid.core.models import InstanceState, JobState
from hybrid.node.processes import find
from tests.e2e.conftest import deployed
from tests.e2e.deployment import Command, Deployment, kill

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def module_cluster() -> Iterator[Deployment]:
    """A cluster that is not started: most tests here start it themselves."""
    with deployed() as deployment:
        yield deployment


@pytest.fixture
def fresh(module_cluster: Deployment) -> Deployment:
    """The module's cluster, taken down."""
    module_cluster.down()
    module_cluster.assert_nothing_left()
    return module_cluster


def start_up(cluster: Deployment) -> tuple[Command, int]:
    """Start `hybrid up`; return it and its controller's process, with Ray on its way."""
    stale = cluster.lock_pid
    command = cluster.start("up", str(cluster.config), "-y")
    cluster.wait_until(
        lambda: cluster.lock_pid not in (stale, 0) and cluster.pids_of("home-1"),
        "the controller to start Ray",
    )
    assert cluster.controller_pid == 0, "ready before the test could cut in"
    return command, cluster.lock_pid


def start_down(cluster: Deployment) -> Command:
    """Start a `hybrid down` that waits for running work; return it once it drains."""
    cluster.learn()
    command = cluster.start("down", str(cluster.config), "-y", "--drain", "10m")
    cluster.wait_until(
        lambda: (
            cluster.status().controller.state == "closing"
            and cluster.live_rows()[0].state is InstanceState.DRAINING
        ),
        "the drain to begin",
    )
    return command


def heads(cluster: Deployment) -> list[str]:
    """Return the programs that look after a head."""
    return [words for words in cluster.processes().values() if words.startswith("gcs_server")]


def test_up_after_a_controller_killed_in_the_middle_of_up_has_one_cluster(
    fresh: Deployment,
) -> None:
    command, pid = start_up(fresh)

    assert kill([pid])
    died = command.wait()
    done = fresh.up()

    assert died.code == 1
    assert "the controller ended (signal 9)" in died.err
    assert "is up" in done.out
    assert len(heads(fresh)) == 1
    assert [n.name for n in fresh.status().nodes] == ["head", "home-1"]


def test_ctrl_c_during_an_up_that_takes_over_ends_its_controller_and_nothing_else(
    cluster: Deployment,
) -> None:
    job = cluster.submit("site=onprem")
    cluster.wait_until(cluster.started, "the task to start")
    before = {name: cluster.pid_of(name) for name in ("head", "home-1")}
    cluster.kill_controller()
    stale = cluster.lock_pid

    command = cluster.start("up", str(cluster.config), "-y")
    cluster.wait_until(lambda: cluster.lock_pid != stale, "the controller to begin")
    pid = cluster.lock_pid
    command.process.send_signal(signal.SIGINT)
    done = command.wait()

    assert done.code == 130
    assert find(pid) is None
    assert "Still there:" in done.text
    assert {name: cluster.pid_of(name) for name in before} == before
    cluster.up()
    cluster.open_gate()
    assert job.wait() is JobState.SUCCEEDED
    assert len(cluster.started()) == 1


def test_a_stopped_controller_says_what_goes_on_and_the_next_takes_over(
    cluster: Deployment,
) -> None:
    job = cluster.submit("site=cloud")
    cluster.wait_until(cluster.started, "the task to start")
    (row,) = cluster.live_rows()
    before = {name: cluster.pid_of(name) for name in ("head", "home-1", row.instance_id)}

    cluster.stop_controller()
    log = (cluster.state_dir / "controller.log").read_text().splitlines()
    cluster.up()

    assert (
        "The controller has stopped. The head, 1 on-prem hosts and 1 rented instances go on"
        in (log[-1])
    )
    assert {name: cluster.pid_of(name) for name in before} == before
    assert [r.instance_id for r in cluster.live_rows()] == [row.instance_id]
    cluster.open_gate()
    assert job.wait().value == "succeeded"
    assert len(cluster.started()) == 1


def test_after_a_controller_killed_in_the_middle_of_down_up_reopens_and_down_closes(
    cluster: Deployment,
) -> None:
    job = cluster.submit("site=cloud")
    cluster.wait_until(cluster.started, "the task to start")
    head = cluster.pid_of("head")

    command = start_down(cluster)
    cluster.kill_controller()
    died = command.wait()
    cluster.up()

    assert died.code == 1
    assert "the controller died before it had finished" in died.err
    assert cluster.pid_of("head") == head
    assert not cluster.status().mode.is_closing
    assert job.status() is JobState.RUNNING

    command = start_down(cluster)
    cluster.kill_controller()
    command.wait()
    cluster.down("--drain", "0s")  # without it, the time that was given goes on

    assert cluster.jobs()[job.id].state is JobState.CANCELLED
    assert len(cluster.records()) == len(cluster.rows())
    cluster.assert_nothing_left()


def test_down_after_a_controller_killed_in_the_middle_of_up_leaves_nothing(
    fresh: Deployment,
) -> None:
    command, pid = start_up(fresh)

    assert kill([pid])
    command.wait()
    fresh.down()

    fresh.assert_nothing_left()


def test_down_during_up_ends_what_is_starting(fresh: Deployment) -> None:
    command, pid = start_up(fresh)

    fresh.down()
    done = command.wait()

    assert done.code in (0, 1)  # it may have been ready for a moment
    assert find(pid) is None
    fresh.assert_nothing_left()


def test_ctrl_c_during_up_leaves_nothing_and_says_so(fresh: Deployment) -> None:
    command, pid = start_up(fresh)

    command.process.send_signal(signal.SIGINT)
    done = command.wait()

    assert done.code == 130
    assert "Nothing is left." in done.text
    assert find(pid) is None
    fresh.assert_nothing_left()


def test_ctrl_c_in_the_foreground_before_it_is_ready_leaves_nothing(fresh: Deployment) -> None:
    """`up --foreground` is the controller itself, and a terminal signals all that it started."""
    command = fresh.start("up", str(fresh.config), "-y", "--foreground", start_new_session=True)
    fresh.wait_until(lambda: fresh.pids_of("home-1"), "the controller to start Ray")

    os.killpg(command.process.pid, signal.SIGINT)
    done = command.wait()

    assert done.code == 0, done.text
    fresh.assert_nothing_left()


@pytest.mark.parametrize("moment", ["lock", "head"])
def test_a_signal_in_the_first_moments_of_the_start_leaves_nothing(
    fresh: Deployment, moment: str
) -> None:
    command = fresh.start("up", str(fresh.config), "-y", "--foreground")
    stale = fresh.lock_pid
    fresh.wait_until(
        lambda: fresh.pids_of("head") if moment == "head" else fresh.lock_pid != stale,
        f"the controller to come to the {moment}",
    )

    command.process.send_signal(signal.SIGTERM)
    done = command.wait()

    assert done.code == 0, done.text
    assert "Traceback" not in done.text
    fresh.assert_nothing_left()


def test_down_twice_is_fine(fresh: Deployment) -> None:
    done = fresh.down()

    assert done.out == "Cluster e2e is not running, and nothing of it is left.\n"


def test_down_with_a_drain_waits_for_running_work(cluster: Deployment) -> None:
    job = cluster.submit("site=cloud", "site=onprem", count=1)
    cluster.wait_until(lambda: len(cluster.started()) == 2, "both tasks to start")
    cluster.learn()

    command = cluster.start("down", str(cluster.config), "-y", "--drain", "10m")
    cluster.wait_until(
        lambda: (
            cluster.status().controller.state == "closing"
            and cluster.live_rows()[0].state is InstanceState.DRAINING
        ),
        "the drain to begin",
    )
    refused = cluster.hybrid("submit", "--", "true", code=4)
    assert command.process.poll() is None
    assert job.status() is JobState.RUNNING
    cluster.open_gate()
    done = command.wait()

    assert "going down" in refused.err
    assert done.code == 0, done.text
    assert len(cluster.started()) == 2
    assert cluster.jobs()[job.id].state is JobState.SUCCEEDED
    cluster.assert_nothing_left()


def test_a_second_down_that_gives_no_time_ends_running_jobs_and_rented_nodes(
    cluster: Deployment,
) -> None:
    job = cluster.submit("site=cloud", name="endless")
    cluster.wait_until(cluster.started, "the task to start")
    (row,) = cluster.live_rows()
    command = start_down(cluster)

    cluster.down("--drain", "0s")
    done = command.wait()

    assert done.code == 0, done.text
    assert f"job {job.id} (endless), running" in done.out
    assert f"instance {row.instance_id} (gpux2-cpux2), $2.40/h" in done.out
    assert "Cluster e2e is closed: nothing is rented, no node is left." in done.out
    assert cluster.jobs()[job.id].state is JobState.CANCELLED
    assert {r.state for r in cluster.rows()} == {InstanceState.TERMINATED}
    cluster.assert_nothing_left()


def test_nothing_is_left_when_up_is_told_to_end_at_its_confirmation(fresh: Deployment) -> None:
    """Nobody is there to say yes."""
    done = fresh.hybrid("up", str(fresh.config), code=2)

    assert "-y" in done.err
    fresh.assert_nothing_left()
