"""What a start refuses, with the reason and what to do, and that it leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import deployed
from tests.e2e.deployment import HOST, HYBRID, NAME, Deployment

pytestmark = [pytest.mark.ray, pytest.mark.slow]

# Root may write anywhere, unless it gives that right up.
WITHOUT_ROOTS_RIGHTS = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    if os.geteuid() == 0
    else []
)


@pytest.fixture(scope="module")
def module_cluster() -> Iterator[Deployment]:
    """A cluster that is not started: a refused start leaves nothing to share."""
    with deployed() as deployment:
        yield deployment


@pytest.fixture
def fresh(module_cluster: Deployment) -> Deployment:
    """The module's cluster, down, with the usual configuration."""
    module_cluster.down()
    module_cluster.configure()
    return module_cluster


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A program (this one) that has a port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def port_of(server: socket.socket) -> int:
    return int(server.getsockname()[1])


def refused_up(cluster: Deployment, code: int = 2) -> str:
    """Run an `up` that is refused; return the last line it said."""
    done = cluster.hybrid("up", str(cluster.config), "-y", code=code)
    assert "Traceback" not in done.text
    return done.err.splitlines()[-1]


@pytest.mark.parametrize("setting", ["port", "dashboard_port"])
def test_a_taken_port_of_the_head_is_named_with_its_holder(
    fresh: Deployment, listener: socket.socket, setting: str
) -> None:
    port = port_of(listener)
    fresh.configure(head={setting: port})

    said = refused_up(fresh)

    assert said.startswith(f"Error: head.{setting}: port {port} is taken by ")
    assert f"(pid {os.getpid()})" in said
    assert f"set head.{setting} to another port or to auto" in said
    fresh.assert_nothing_left()


def test_a_taken_port_of_the_controller_is_named_with_its_holder(
    fresh: Deployment, listener: socket.socket
) -> None:
    port = port_of(listener)
    fresh.configure(controller={"port": port})

    said = refused_up(fresh)

    assert said.startswith(f"Error: controller.port: cannot listen on 127.0.0.1:{port}")
    assert f"(pid {os.getpid()}) has it" in said
    assert "set controller.port to another port or `auto`" in said
    fresh.assert_nothing_left()


def test_another_version_of_ray_than_the_installed_one_is_refused(fresh: Deployment) -> None:
    fresh.configure(ray={"version": "2.1.0"})

    said = refused_up(fresh)

    assert re.search(r"ray\.version is 2\.1\.0, but Ray [\d.]+ is installed here", said)
    fresh.assert_nothing_left()


@pytest.mark.parametrize("where", ["above", "inside"])
def test_a_state_folder_that_cannot_be_written_is_refused(fresh: Deployment, where: str) -> None:
    folder = fresh.state_dir.parent if where == "above" else fresh.state_dir
    shutil.rmtree(fresh.state_dir, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o500)
    try:
        done = fresh.start(
            *("up", str(fresh.config), "-y"), program=[*WITHOUT_ROOTS_RIGHTS, HYBRID]
        ).wait()
    finally:
        folder.chmod(0o700)

    assert done.code == 2, done.text
    assert f"Error: the state folder {fresh.state_dir} cannot be " in done.err
    assert "set state_dir (or HYBRID_HOME) to another folder" in done.err
    assert "Traceback" not in done.text
    fresh.assert_nothing_left()


def test_a_second_controller_of_the_same_folder_is_refused(cluster: Deployment) -> None:
    pid = cluster.controller_pid
    program = [sys.executable, "-m", "hybrid.app"]
    folder = ["--config", str(cluster.config), "--state-dir", str(cluster.state_dir)]
    before = cluster.status().controller.epoch

    done = cluster.start("run", *folder, program=program).wait()
    closing = cluster.start("run", *folder, "--closing", program=program).wait()

    assert (done.code, closing.code) == (4, 4)
    assert f"a controller of this cluster runs already (pid {pid}," in done.err
    assert "`hybrid down`" in done.err
    cluster.wait_until_ready()
    assert cluster.controller_pid == pid
    assert cluster.status().controller.epoch == before


def test_a_second_up_finds_the_cluster_up(cluster: Deployment) -> None:
    pids = {name: cluster.pid_of(name) for name in ("head", "home-1")}
    controller = cluster.controller_pid

    done = cluster.up()

    assert f"Cluster {NAME} is running already (pid {controller})." in done.text
    assert f"Cluster {NAME} is up." in done.out
    assert {name: cluster.pid_of(name) for name in pids} == pids
    assert cluster.controller_pid == controller


def test_a_configuration_without_the_provider_of_live_instances_is_refused(
    cluster: Deployment,
) -> None:
    job = cluster.submit("site=cloud")
    cluster.wait_until(cluster.started, "the task to start")
    (row,) = cluster.live_rows()
    before = {name: cluster.pid_of(name) for name in ("head", "home-1", row.instance_id)}
    cluster.stop_controller()
    cluster.configure(clouds=None)

    said = refused_up(cluster)

    assert "no provider local any more, but 1 instance is still rented there" in said
    assert f"{row.instance_id} (local {row.provider_id}, running)" in said
    assert "Put the entries back under 'clouds'" in said
    assert {name: cluster.pid_of(name) for name in before} == before
    refused_down = cluster.hybrid("down", str(cluster.config), "-y", code=2)
    assert row.instance_id in refused_down.err
    cluster.configure()
    cluster.up()
    cluster.open_gate()
    assert job.wait().value == "succeeded"
    cluster.wait_until_home()


def test_a_configuration_that_is_wrong_changes_nothing(cluster: Deployment) -> None:
    pid = cluster.controller_pid
    good = cluster.config.read_text()
    cluster.config.write_text(good.replace("name: e2e", "nam: e2e"))

    done = cluster.hybrid("up", str(cluster.config), "-y", code=2)

    assert "nam" in done.err
    assert cluster.controller_pid == pid
    cluster.config.write_text(good)


def test_hosts_that_come_and_go_in_the_configuration_are_joined_and_left(
    cluster: Deployment,
) -> None:
    job = cluster.submit("site=onprem")
    cluster.wait_until(cluster.started, "the task to start")
    home = cluster.pid_of("home-1")
    cluster.stop_controller()
    cluster.configure(onprem={"hosts": [HOST, {**HOST, "name": "home-2"}]})

    cluster.up()

    assert [n.name for n in cluster.status().nodes] == ["head", "home-1", "home-2"]
    assert cluster.pid_of("home-1") == home
    cluster.open_gate()
    assert job.wait().value == "succeeded"
    cluster.stop_controller()
    cluster.configure(onprem={"hosts": [{**HOST, "name": "home-2"}]})
    cluster.up()
    assert not cluster.pids_of("home-1")
    cluster.wait_until(
        lambda: [n.name for n in cluster.status().nodes] == ["head", "home-2"],
        "the removed host to leave",
    )


def test_down_ends_a_host_that_was_taken_out_of_the_configuration(cluster: Deployment) -> None:
    cluster.stop_controller()
    cluster.configure(onprem={"hosts": [{**HOST, "name": "home-3"}]})

    cluster.down()

    cluster.assert_nothing_left()
