"""Nothing of a node is left, however it ends. Real processes, a fake `ray start`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.node import processes
from hybrid.node.folder import Folder, Phase
from hybrid.node.stopping import stop
from tests.node.box import PROGRAM, Box, is_gone, wait_until

pytestmark = pytest.mark.slow


def test_a_killed_supervisor_leaves_nothing_behind(instance: Box) -> None:
    instance.start_and_wait()
    found = instance.everything()

    os.kill(instance.supervisor().pid, signal.SIGKILL)

    wait_until(lambda: is_gone(found), "the guardian to end everything")
    assert instance.folder.status().phase is Phase.FAILED  # type: ignore[union-attr]
    assert "killed by signal 9" in instance.problem
    assert not instance.temp_dir.exists()


def test_a_killed_guardian_takes_the_node_with_it(instance: Box) -> None:
    instance.start_and_wait()
    found = instance.everything()

    os.kill(instance.guardian().pid, signal.SIGKILL)

    wait_until(lambda: is_gone(found), "the supervisor to end everything")
    assert not instance.temp_dir.exists()


def test_stop_ends_what_two_killed_programs_left(instance: Box) -> None:
    instance.start_and_wait()
    guardian, supervisor = instance.guardian(), instance.supervisor()
    raylet = instance.raylet()
    os.kill(guardian.pid, signal.SIGSTOP)  # or it would clean up, or warn the other
    os.kill(supervisor.pid, signal.SIGSTOP)
    os.kill(guardian.pid, signal.SIGKILL)
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_until(lambda: is_gone([guardian, supervisor]), "both to be gone")
    assert processes.is_alive(raylet)

    done = instance.call("stop")

    assert done.returncode == 0
    assert instance.everything() == []
    assert not instance.temp_dir.exists()
    assert instance.folder.status().phase is Phase.STOPPED  # type: ignore[union-attr]


def test_stop_tidies_after_everything_was_killed(instance: Box) -> None:
    instance.start_and_wait()
    for process in instance.everything():
        os.kill(process.pid, signal.SIGSTOP)
    for process in instance.everything():
        os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not instance.everything(), "all to be gone")

    done = instance.call("stop")

    assert done.returncode == 0
    assert not instance.temp_dir.exists()


def test_stop_ends_a_hung_supervisor_after_its_grace(instance: Box) -> None:
    instance.start_and_wait()
    found = instance.everything()
    os.kill(instance.supervisor().pid, signal.SIGSTOP)

    done = instance.call("stop", "--grace-s", "0.2")

    assert done.returncode == 0
    assert is_gone(found)


def test_a_stubborn_raylet_is_killed(instance: Box) -> None:
    instance.behave("stubborn")
    instance.start_and_wait()
    found = instance.everything()

    assert stop(instance.path) == ()

    assert is_gone(found)


def test_a_number_used_again_by_a_stranger_is_left_alone(instance: Box) -> None:
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        process = processes.find(stranger.pid)
        assert process is not None
        forged = processes.Process(stranger.pid, process.start_time - 1, 1, "x")
        instance.folder.write_supervisor(forged, instance.tag)

        alive, done = instance.call("alive"), instance.call("stop")

        assert (alive.returncode, done.returncode) == (1, 0)
        assert processes.is_alive(process)
    finally:
        stranger.kill()
        stranger.wait()


def test_stop_of_nothing_is_done_and_of_rubbish_is_an_error(instance: Box, tmp_path: Path) -> None:
    assert stop(tmp_path / "never-was") == ()
    (instance.path / "node.json").write_text("{")

    started, stopped = instance.call("start"), instance.call("stop")

    assert (started.returncode, stopped.returncode) == (2, 2)
    assert "node.json is not JSON" in started.stderr
    instance.write()


def test_run_stays_in_the_foreground_and_passes_a_signal_on(instance: Box) -> None:
    running = subprocess.Popen([sys.executable, "-P", str(PROGRAM), "run", str(instance.path)])
    instance.wait_for(Phase.RUNNING)
    found = instance.everything()

    running.terminate()

    assert running.wait(timeout=20) == 0
    assert is_gone(found)
    assert Folder(instance.path).status().phase is Phase.STOPPED  # type: ignore[union-attr]
