"""A node's life from start to stop, with real processes and a fake `ray start`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybrid.node import processes
from hybrid.node.folder import Phase
from hybrid.node.stopping import is_alive
from tests.node.box import PROGRAM, Box, box, is_gone, wait_until

pytestmark = pytest.mark.slow


def test_a_node_runs_and_a_signal_ends_all_of_it(instance: Box) -> None:
    instance.start_and_wait()
    hiding = wait_until(
        lambda: [p for p in instance.everything() if p.name == "sleep"], "the hiding process"
    )
    assert processes.environment(hiding[0].pid) == [b""]
    found = instance.everything()
    status = instance.folder.status()

    os.kill(instance.supervisor().pid, signal.SIGTERM)

    assert status is not None
    assert status.raylet_pid in {p.pid for p in found}
    wait_until(lambda: is_gone(found), "all processes to end")
    assert instance.folder.status().phase is Phase.STOPPED  # type: ignore[union-attr]
    assert not instance.temp_dir.exists()
    assert not instance.ray_dir.exists()


def test_ray_gets_the_settings_and_the_mark_but_no_foreign_secret(instance: Box) -> None:
    instance.write(env={"FAKE_RAY": "ok", "RAY_CLOUD_INSTANCE_ID": "i-1", "UNWANTED": None})

    instance.call(
        "start",
        env={"RAY_ADDRESS": "1.2.3.4:5", "AWS_SECRET_ACCESS_KEY": "s3cret", "UNWANTED": "x"},
    )
    instance.wait_for(Phase.RUNNING)

    env = instance.given()["env"]
    assert env["RAY_CLOUD_INSTANCE_ID"] == "i-1"
    assert env["HYBRID_NODE_TAG"] == instance.tag
    assert not {"RAY_ADDRESS", "AWS_SECRET_ACCESS_KEY", "UNWANTED"} & env.keys()


def test_the_token_of_the_file_goes_to_ray_and_nowhere_else(host: Box, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("canary-token\n")
    host.write(ray_token_file=str(token_file))

    host.start_and_wait()

    assert host.given()["env"]["RAY_AUTH_TOKEN"] == "canary-token"
    written = b"".join(p.read_bytes() for p in host.path.iterdir())
    assert b"canary-token" not in written
    assert "canary-token" not in " ".join(host.given()["argv"])


def test_an_instance_stays_rented_when_its_raylet_is_killed(instance: Box) -> None:
    instance.start_and_wait()
    found = instance.everything()
    keepers = {instance.supervisor().pid, instance.guardian().pid}

    os.kill(instance.raylet().pid, signal.SIGKILL)

    instance.wait_for(Phase.EXITED)
    assert instance.problem == "Ray ended by itself: raylet was killed by SIGKILL"
    assert {p.pid for p in found if processes.is_alive(p)} == keepers
    assert not instance.temp_dir.exists()
    assert is_alive(instance.path)
    instance.call("stop")
    assert not is_alive(instance.path)
    assert instance.folder.status().phase is Phase.STOPPED  # type: ignore[union-attr]


def test_a_host_ends_when_its_raylet_ends(host: Box) -> None:
    host.behave("brief")
    host.start_and_wait(Phase.EXITED)

    wait_until(lambda: not host.everything(), "the program to end")

    assert host.problem == "Ray ended by itself: raylet ended with exit code 0"
    assert not is_alive(host.path)


def test_a_head_ends_when_its_gcs_is_killed(head: Box) -> None:
    head.start_and_wait()
    gcs = next(p for p in head.everything() if p.name == "gcs_server")

    os.kill(gcs.pid, signal.SIGKILL)

    wait_until(lambda: not head.everything(), "the head to end")
    assert head.problem == "Ray ended by itself: gcs_server was killed by SIGKILL"


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        (
            "fail",
            "`ray start` ended with exit code 1; its last words: "
            "Version mismatch: the cluster runs Ray 0.1",
        ),
        (
            "hang",
            "`ray start` did not finish in 0.5 s; its last words: waiting for the head",
        ),
        (
            "no_raylet",
            "`ray start` left no raylet; its last words: Ray runtime started, or so it seems",
        ),
    ],
)
def test_a_failed_start_says_why_in_rays_own_words(instance: Box, mode: str, problem: str) -> None:
    instance.write(env={"FAKE_RAY": mode}, start_limit_s=0.5 if mode == "hang" else 60)

    instance.start_and_wait(Phase.FAILED)

    assert instance.problem == problem
    assert len(instance.everything()) == 2  # guardian and supervisor: still rented
    instance.call("stop")
    assert instance.problem == problem  # still says so after its end


def test_a_host_whose_start_fails_ends(host: Box) -> None:
    host.write(command=["/nonexistent/python", "start"])

    host.start_and_wait(Phase.FAILED)

    wait_until(lambda: not host.everything(), "the program to end")
    assert "cannot run `ray start`: [Errno 2] No such file" in host.problem


def test_a_boot_delay_is_waited_for_and_can_be_cut_short(instance: Box) -> None:
    instance.write(boot_delay_s=1000)
    instance.start_and_wait(Phase.BOOTING)

    done = instance.call("stop")

    assert done.returncode == 0
    assert not instance.temp_dir.exists()


def test_a_second_program_on_the_same_folder_refuses(instance: Box) -> None:
    instance.start_and_wait()

    again = instance.call("start")

    assert again.returncode == 3
    assert "running already" in again.stderr
    assert is_alive(instance.path)


def test_a_stopped_node_starts_again_only_when_told(instance: Box) -> None:
    instance.call("stop")

    refused = instance.call("start")

    assert refused.returncode == 4
    instance.folder.take_back_stop()
    instance.start_and_wait()


def test_a_stop_order_in_the_folder_is_enough(instance: Box) -> None:
    instance.start_and_wait()
    found = instance.everything()

    instance.folder.order_stop()

    wait_until(lambda: is_gone(found), "the node to obey")


def test_a_node_whose_folder_was_removed_ends(instance: Box) -> None:
    instance.start_and_wait()
    found = instance.everything()

    subprocess.run(["rm", "-rf", str(instance.path)], check=True)

    wait_until(lambda: is_gone(found), "the node to notice")
    assert not instance.temp_dir.exists()


def test_a_lease_ends_a_node_unless_it_is_renewed(instance: Box, tmp_path: Path) -> None:
    lease = tmp_path / "lease"
    lease.write_text(f"{time.time() + 2}")
    instance.write(lease_file=str(lease))
    instance.start_and_wait()
    renewed_s = time.time() + 6
    lease.write_text(f"{renewed_s}")
    found = instance.everything()

    wait_until(lambda: is_gone(found), "the lease to end")

    assert time.time() >= renewed_s - 0.5
    assert instance.problem == "lease ended"
    assert instance.folder.status().phase is Phase.STOPPED  # type: ignore[union-attr]


def test_a_node_lives_without_room_for_its_files(instance: Box) -> None:
    env = {**os.environ, "HYBRID_NODE_TAG": instance.tag}
    limited = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", sys.executable, "-P", str(PROGRAM)]

    done = subprocess.run([*limited, "start", str(instance.path)], env=env, timeout=60)

    assert done.returncode == 0
    found = wait_until(
        lambda: [p for p in instance.everything() if p.name == "raylet"], "the raylet"
    )
    assert instance.folder.status() is None
    assert instance.call("stop").returncode == 0
    assert is_gone(found)


def test_two_nodes_that_start_together_choose_different_ports(tmp_path: Path) -> None:
    names = ("node-manager-port", "object-manager-port")
    with box(tmp_path / "a") as one, box(tmp_path / "b") as two:
        for node in (one, two):
            command = [*node.orders["command"], *(f"--{n}={{port:{n[:4]}}}" for n in names)]  # type: ignore[misc]
            node.write(command=command, cluster_id="same", id=node.path.name)
        one.write(id="b")  # the same place to begin the search
        one.start()
        two.start()
        one.wait_for(Phase.RUNNING)
        two.wait_for(Phase.RUNNING)

        ports = [*one.folder.ports().values(), *two.folder.ports().values()]

        assert len(set(ports)) == 4
        assert f"--node-manager-port={one.folder.ports()['node']}" in one.given()["argv"]
        one.write(id="a")


def test_a_node_takes_its_old_ports_again(instance: Box) -> None:
    command = [*instance.orders["command"], "--node-manager-port={port:node}"]  # type: ignore[misc]
    instance.write(command=command)
    instance.start_and_wait()
    before = instance.folder.ports()
    instance.call("stop")
    instance.folder.take_back_stop()
    instance.write(id="i-2")  # would begin its search elsewhere

    instance.start_and_wait()

    assert instance.folder.ports() == before
