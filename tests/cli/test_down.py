"""`hybrid down` as a process, with a stand-in for the controller."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.client import discover
from tests.cli.conftest import Run
from tests.cli.stand_in import start_node
from tests.cli.terminal import Terminal
from tests.running import dead_pid, write_record

pytestmark = [
    pytest.mark.slow,
    # the controller is meant to outlive the command that started it
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

ONPREM = "name: lab\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(ONPREM)
    return path


@pytest.fixture(autouse=True)
def _no_process_outlives_its_test(home: Path) -> Iterator[None]:
    yield
    for path in home.glob("*/controller.json"):
        pid = json.loads(path.read_text())["pid"]
        if pid != os.getpid() and discover.is_alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def stray(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a node of a cluster whose controller is gone."""
    process = start_node(home / "lab")
    yield process
    process.kill()
    process.wait()


def test_down_when_there_is_nothing(start: Run) -> None:
    shown = start("down")

    assert shown.code == 0
    assert shown.out == "No hybrid cluster is running, and nothing is left of one.\n"


def test_down_lists_what_ends_and_needs_a_yes(start: Run, config: Path, home: Path) -> None:
    start("up", str(config))

    shown = start("down")

    assert shown.code == 2
    assert "job j-running (train), running" in shown.out
    assert "instance i-0000000001 (local-4), $2.40/h" in shown.out
    assert "pass -y" in shown.err
    assert discover.read_record(home / "lab") is not None


def test_down_follows_the_controller_to_its_end(start: Run, config: Path, home: Path) -> None:
    start("up", str(config), STAND_IN_CLOSE_S="1")

    shown = start("down", "-y", "--drain", "90s")

    assert shown.code == 0
    assert "after 1m and stop" not in shown.out  # nobody was asked
    assert "Closing lab: returning 1 instance" in shown.err
    assert shown.out.endswith("Cluster lab is closed: nothing is rented, no node is left.\n")
    assert discover.read_record(home / "lab") is None


def test_down_twice_is_fine(start: Run, config: Path) -> None:
    start("up", str(config))
    start("down", "-y")

    again = start("down", "-y")
    by_file = start("down", str(config), "-y")

    assert (again.code, by_file.code) == (0, 0)
    assert "nothing is left of one" in again.out
    assert "Cluster lab is not running, and nothing of it is left." in by_file.out


def test_down_asks_on_a_terminal(
    environment: dict[str, str], start: Run, config: Path, tmp_path: Path, home: Path
) -> None:
    start("up", str(config))
    words = [sys.executable, "-m", "hybrid.cli.main", "down", "--drain", "10m"]
    with Terminal(words, env=environment, cwd=tmp_path) as terminal:
        terminal.wait_for("End this after 10m and stop all nodes? [y/N]")
        terminal.type("n\n")

        assert terminal.finish() == 1

    assert discover.read_record(home / "lab") is not None


@pytest.mark.parametrize("timeout", ["1s", "0s"])
def test_down_gives_up_watching_and_says_that_it_goes_on(
    start: Run, config: Path, timeout: str
) -> None:
    start("up", str(config), STAND_IN_CLOSE_S="20")

    shown = start("down", "-y", "--timeout", timeout)

    assert shown.code == 5
    assert "closing lab takes longer; it goes on" in shown.err


def test_a_second_down_joins_the_first(start: Run, config: Path) -> None:
    start("up", str(config), STAND_IN_CLOSE_S="4")
    start("down", "-y", "--timeout", "1ms")

    again = start("down")  # no question: it is closing already

    assert again.code == 0
    assert "is closed" in again.out


def test_ctrl_c_stops_watching_only(
    environment: dict[str, str], start: Run, config: Path, tmp_path: Path, home: Path
) -> None:
    start("up", str(config), STAND_IN_CLOSE_S="3")
    words = [sys.executable, "-m", "hybrid.cli.main", "down", "-y"]
    with Terminal(words, env=environment, cwd=tmp_path) as terminal:
        terminal.wait_for("returning 1 instance")
        terminal.type("\x03")

        assert terminal.finish() == 130

    assert "goes on" in terminal.text
    end_s = time.monotonic() + 60
    while discover.read_record(home / "lab") is not None and time.monotonic() < end_s:
        time.sleep(0.1)
    assert discover.read_record(home / "lab") is None


def test_a_controller_that_dies_while_closing_is_a_failure(start: Run, config: Path) -> None:
    start("up", str(config), STAND_IN_CRASH_ON_CLOSE="1")

    shown = start("down", "-y")

    assert shown.code == 1
    assert "the controller died before it had finished" in shown.err
    assert "run `hybrid down` again" in shown.err


def test_what_a_dead_controller_left_is_closed_by_a_new_one(
    start: Run, config: Path, home: Path
) -> None:
    write_record(home / "lab", url="http://127.0.0.1:1", pid=dead_pid())
    record = json.loads((home / "lab" / "controller.json").read_text())
    record["config_path"] = str(config)
    (home / "lab" / "controller.json").write_text(json.dumps(record))

    unasked = start("down")
    shown = start("down", "-y")

    assert unasked.code == 2
    assert "The controller of lab is gone" in shown.out
    assert "Cluster lab is closed" in shown.out
    assert shown.code == 0
    assert (
        "--closing" in (home / "lab" / "controller.log").read_text()
        or "closing=True" in (home / "lab" / "controller.log").read_text()
    )


def test_without_its_configuration_a_dead_cluster_needs_the_file(
    start: Run, config: Path, home: Path
) -> None:
    write_record(home / "lab", url="http://127.0.0.1:1", pid=dead_pid())

    shown = start("down", "-y")
    with_file = start("down", str(config), "-y")

    assert shown.code == 2
    assert "run `hybrid down FILE`" in shown.err
    assert with_file.code == 0


def test_a_stray_node_is_found_without_any_record(
    start: Run, config: Path, home: Path, stray: subprocess.Popen[bytes]
) -> None:
    (home / "lab" / "last_config").write_text(str(config))

    shown = start("down", "-y", STAND_IN_NODE="1")

    assert f"node gpu-1: process {stray.pid}" in shown.out
    assert "Cluster lab is closed" in shown.out
    assert shown.code == 0
    assert stray.wait(timeout=60) != 0


def test_what_the_controller_did_not_end_is_not_hidden(
    start: Run, config: Path, home: Path, stray: subprocess.Popen[bytes]
) -> None:
    shown = start("down", str(config), "-y")

    assert shown.code == 1
    assert "cluster lab was not closed; this is left" in shown.err
    assert f"node gpu-1: process {stray.pid}" in shown.err


def test_several_leftovers_need_a_name(start: Run, home: Path) -> None:
    for name in ("lab", "prod"):
        write_record(home / name, url="http://127.0.0.1:1", pid=dead_pid())

    shown = start("down", "-y")

    assert shown.code == 2
    assert "lab, prod; choose one with --cluster" in shown.err
