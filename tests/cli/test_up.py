"""`hybrid up` as a process, with a stand-in for the controller."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.cli.remains import live_nodes
from hybrid.client import discover
from tests.cli.conftest import Run
from tests.cli.stand_in import start_node
from tests.cli.terminal import Terminal

pytestmark = [
    pytest.mark.slow,
    # the controller is meant to outlive the command that started it
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

ONPREM = "name: lab\nonprem:\n  hosts:\n    - {name: gpu-1, accelerators: GPU:4, cpus: 4}\n"
CLOUD = (
    ONPREM
    + "clouds:\n  any_of:\n"
    + "    - {infra: local, accelerators: GPU:4, cpus: 4, usd_per_hour: 2.40, max_nodes: 3}\n"
    + "budget: {nodes: 2, usd_per_day: 20}\n"
)


@pytest.fixture
def onprem(tmp_path: Path) -> str:
    path = tmp_path / "onprem.yaml"
    path.write_text(ONPREM)
    return str(path)


@pytest.fixture
def cloud(tmp_path: Path) -> str:
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return str(path)


@pytest.fixture(autouse=True)
def _no_controller_outlives_its_test(home: Path) -> Iterator[None]:
    yield
    for path in home.glob("*/controller.json"):
        pid = json.loads(path.read_text())["pid"]
        if pid != os.getpid() and discover.is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def record_of(home: Path) -> discover.Record:
    record = discover.read_record(home / "lab")
    assert record is not None
    return record


def wait_for_record(home: Path) -> None:
    end_s = time.monotonic() + 60
    while discover.read_record(home / "lab") is None and time.monotonic() < end_s:
        time.sleep(0.05)
    assert record_of(home).is_alive


def test_up_starts_a_controller_that_outlives_it(start: Run, home: Path, onprem: str) -> None:
    shown = start("up", onprem, STAND_IN_START_S="1")

    assert (shown.code, shown.err.splitlines()[-1:]) == (0, ["Starting lab: starting the head"])
    assert "Cluster lab is up." in shown.out
    assert "Nothing can be rented: no money can be spent." in shown.out
    assert str(home / "lab" / "controller.log") in shown.out
    assert record_of(home).is_alive
    assert (home / "lab").stat().st_mode & 0o777 == 0o700
    assert (home / "lab" / "controller.log").stat().st_mode & 0o777 == 0o600
    assert start("status", "--json").code == 0


def test_up_twice_reconciles(start: Run, home: Path, onprem: str) -> None:
    start("up", onprem)
    pid = record_of(home).pid

    again = start("up", onprem)

    assert again.code == 0
    assert f"running already (pid {pid})" in again.err
    assert record_of(home).pid == pid


def test_up_with_another_file_that_says_the_same_changes_nothing(
    start: Run, home: Path, onprem: str, tmp_path: Path
) -> None:
    start("up", onprem)
    pid = record_of(home).pid
    other = tmp_path / "other.yaml"
    other.write_text(ONPREM)

    again = start("up", str(other))

    assert again.code == 0
    assert f"It was started from {onprem}, which says the same" in again.err
    assert record_of(home).pid == pid


def test_up_shows_what_may_be_spent_and_needs_a_yes(start: Run, home: Path, cloud: str) -> None:
    shown = start("up", cloud)

    assert shown.code == 2
    assert "pass -y" in shown.err
    assert "$2.40/h" in shown.out
    assert "Hard caps: 2 nodes at a time, $20.00 a day" in shown.out
    assert "At worst: $4.80/h, $20.00 a day." in shown.out
    assert not (home / "lab").exists()


def test_up_with_yes_asks_nothing(start: Run, home: Path, cloud: str) -> None:
    assert start("up", cloud, "-y").code == 0
    assert record_of(home).is_alive


@pytest.mark.parametrize(("answer", "is_started"), [("y", True), ("n", False), ("", False)])
def test_up_asks_on_a_terminal(
    environment: dict[str, str],
    tmp_path: Path,
    home: Path,
    cloud: str,
    answer: str,
    is_started: bool,
) -> None:
    words = [sys.executable, "-m", "hybrid.cli.main", "up", cloud]
    with Terminal(words, env=environment, cwd=tmp_path) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type(f"{answer}\n")

        code = terminal.finish()

    assert code == (0 if is_started else 1)
    assert (discover.read_record(home / "lab") is not None) is is_started
    if not is_started:
        assert "Error: nothing was done, as you said no" in terminal.text


@pytest.mark.parametrize(
    ("key", "code", "part"),
    [("\x03", 130, "Interrupted: nothing was done."), ("\x04", 1, "as you said no")],
    ids=["ctrl-c", "ctrl-d"],
)
def test_a_question_can_be_left_without_an_answer(
    environment: dict[str, str],
    tmp_path: Path,
    home: Path,
    cloud: str,
    key: str,
    code: int,
    part: str,
) -> None:
    words = [sys.executable, "-m", "hybrid.cli.main", "up", cloud]
    with Terminal(words, env=environment, cwd=tmp_path) as terminal:
        terminal.wait_for("[y/N]")

        assert terminal.finish(key) == code

    assert part in terminal.text
    assert "Aborted" not in terminal.text
    assert not (home / "lab").exists()


@pytest.mark.parametrize(
    ("exit_code", "says", "code", "part"),
    [
        ("2", "Error: head.port: 6379 is taken; set `auto`", 2, "Error: head.port: 6379 is taken"),
        ("4", "a controller of this cluster runs already (pid 7)", 4, "runs already (pid 7)"),
        ("1", "Traceback ...\nValueError: boom", 1, "ValueError: boom"),
    ],
    ids=["configuration", "locked", "bug"],
)
def test_up_fails_fast_when_the_controller_dies(
    start: Run, onprem: str, exit_code: str, says: str, code: int, part: str
) -> None:
    shown = start("up", onprem, STAND_IN_DIE=exit_code, STAND_IN_SAYS=says)

    assert shown.code == code
    assert part in shown.err
    if code == 1:
        assert "the controller ended (exit code 1); its log is" in shown.err


def test_up_shows_only_lines_of_this_start(start: Run, home: Path, onprem: str) -> None:
    start("up", onprem, STAND_IN_DIE="1", STAND_IN_SAYS="first trouble")

    shown = start("up", onprem, STAND_IN_DIE="1", STAND_IN_SAYS="second trouble")

    assert "second trouble" in shown.err
    assert "first trouble" not in shown.err


def test_up_gives_up_waiting_and_says_that_it_goes_on(start: Run, home: Path, onprem: str) -> None:
    shown = start("up", onprem, "--timeout", "1500ms", STAND_IN_HANG="1")

    assert shown.code == 5
    assert "not ready after 1.5 s (starting the " in shown.err
    assert "It goes on: `hybrid status`" in shown.err
    wait_for_record(home)


def test_up_waits_for_one_that_is_still_starting(start: Run, home: Path, onprem: str) -> None:
    start("up", onprem, "--timeout", "1ms", STAND_IN_START_S="1.5")
    wait_for_record(home)

    shown = start("up", onprem)

    assert shown.code == 0
    assert "Cluster lab is up." in shown.out


def test_a_second_up_during_a_start_waits_for_it(
    environment: dict[str, str], start: Run, tmp_path: Path, home: Path, onprem: str
) -> None:
    words = [sys.executable, "-m", "hybrid.cli.main", "up", onprem]
    env = environment | {"STAND_IN_LOCKED_S": "2"}
    with subprocess.Popen(
        words, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as first:
        lock = home / "lab" / "controller.lock"
        while not (lock.exists() and lock.read_text()):
            time.sleep(0.02)

        second = start("up", onprem)

        assert first.wait(timeout=60) == 0
    assert second.code == 0
    assert "Cluster lab is up." in second.out


def test_two_ups_at_the_same_moment_have_one_cluster(
    environment: dict[str, str], tmp_path: Path, home: Path, onprem: str
) -> None:
    words = [sys.executable, "-m", "hybrid.cli.main", "up", onprem]
    env = environment | {"STAND_IN_LOCKED_S": "1"}
    both = [
        subprocess.Popen(
            words, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for _ in range(2)
    ]

    said = [process.communicate(timeout=60)[0] for process in both]

    assert [process.returncode for process in both] == [0, 0], said
    assert record_of(home).is_alive


@pytest.mark.parametrize("is_deaf", [False, True])
def test_ctrl_c_takes_back_what_was_started_and_says_what_is_left(
    environment: dict[str, str], tmp_path: Path, home: Path, onprem: str, is_deaf: bool
) -> None:
    env = environment | {"STAND_IN_HANG": "1"} | ({"STAND_IN_DEAF": "1"} if is_deaf else {})
    words = [sys.executable, "-m", "hybrid.cli.main", "up", onprem]
    with Terminal(words, env=env, cwd=tmp_path) as terminal:
        terminal.wait_for("starting the head")
        pid = record_of(home).pid

        terminal.type("\x03")
        terminal.wait_for("ending what was started")
        if is_deaf:
            time.sleep(0.5)
            terminal.type("\x03")
        code = terminal.finish()

    assert code == 130
    assert ("Nothing is left." in terminal.text) is not is_deaf
    assert discover.is_alive(pid) is is_deaf
    if is_deaf:
        assert f"the controller: process {pid}" in terminal.text
        assert "`hybrid down` ends it." in terminal.text


@pytest.mark.parametrize("was_there", [False, True], ids=["fresh", "taken over"])
def test_ctrl_c_ends_nodes_it_began_and_spares_those_that_were_there(
    environment: dict[str, str], tmp_path: Path, home: Path, onprem: str, was_there: bool
) -> None:
    env = environment | {"STAND_IN_HANG": "1"}
    node = None
    if was_there:
        node = start_node(home / "lab")
    else:
        env["STAND_IN_NODE"] = "1"
    words = [sys.executable, "-m", "hybrid.cli.main", "up", onprem]
    with Terminal(words, env=env, cwd=tmp_path) as terminal:
        terminal.wait_for("starting the head")
        terminal.type("\x03")
        code = terminal.finish()

    assert code == 130
    left = live_nodes(home / "lab")
    if node is None:
        assert "Nothing is left." in terminal.text
        assert left == []
    else:
        assert f"node gpu-1: process {node.pid}" in terminal.text
        assert left == [f"gpu-1: process {node.pid}"]
        node.kill()
        node.wait()


def test_a_spinner_turns_on_a_terminal_only(
    environment: dict[str, str], start: Run, tmp_path: Path, onprem: str
) -> None:
    env = environment | {"STAND_IN_START_S": "1"}
    words = [sys.executable, "-m", "hybrid.cli.main", "up", onprem]
    with Terminal(words, env=env, cwd=tmp_path) as terminal:
        terminal.wait_for("Cluster lab is up")
        terminal.finish()

    spinner = set("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
    assert spinner & set(terminal.text)
    start("down", "-y")
    piped = start("up", onprem, STAND_IN_START_S="1")
    assert not spinner & set(piped.out + piped.err)
    assert "\x1b" not in piped.out + piped.err


def test_up_without_permission_on_the_state_folder(start: Run, tmp_path: Path, onprem: str) -> None:
    if os.geteuid() == 0:
        locked = Path("/sys/hybrid")  # even root may not make a folder there
    else:
        locked = tmp_path / "locked" / "home"
        locked.parent.mkdir(mode=0o500)

    shown = start("up", onprem, HYBRID_HOME=str(locked))

    assert shown.code == 2
    assert f"the state folder {locked}/lab cannot be made" in shown.err
    assert "give this user write access" in shown.err


def test_up_where_the_state_folder_cannot_be(start: Run, tmp_path: Path, onprem: str) -> None:
    (tmp_path / "file").write_text("in the way")

    shown = start("up", onprem, HYBRID_HOME=str(tmp_path / "file" / "home"))

    assert shown.code == 2
    assert "cannot be made" in shown.err
    assert "set state_dir (or HYBRID_HOME)" in shown.err


def test_up_refuses_a_broken_file_before_anything_else(
    start: Run, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.yaml").write_text("name: lab\nonprem: {hosts: [{name: a, gpus: 3}]}\n")

    shown = start("up", "bad.yaml", "-y")

    assert shown.code == 2
    assert "bad.yaml: onprem.hosts[0].gpus" in shown.err
    assert "Traceback" not in shown.err
    assert not (home / "lab").exists()


def test_up_refuses_clouds_whose_machines_cannot_join_before_anything_else(
    start: Run, tmp_path: Path, home: Path
) -> None:
    (known,) = (tmp_path / "metadata").glob("*/entry_points.txt")
    known.write_text(known.read_text() + "tide = providers.local:make\n")
    path = tmp_path / "far.yaml"
    path.write_text(CLOUD.replace("infra: local", "infra: tide"))

    shown = start("up", str(path), "-y")

    assert (shown.code, shown.out) == (2, "")
    assert "machines of tide cannot join" in shown.err
    assert "Starting" not in shown.err
    assert not (home / "lab").exists()


def test_up_refuses_a_name_that_is_not_the_files(start: Run, onprem: str) -> None:
    shown = start("--cluster", "prod", "up", onprem)

    assert shown.code == 2
    assert "--cluster prod" in shown.err


def test_a_cluster_with_a_folder_of_its_own_is_found_by_name(
    start: Run, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(f"{ONPREM}state_dir: ./own state\n")

    assert start("up", "own.yaml").code == 0

    assert (home / "lab").resolve() == tmp_path / "own state"
    assert json.loads(start("status", "--json").out)["controller"]["state"] == "ready"
    assert start("down", "-y", "-c", "lab").code == 0


def test_foreground_becomes_the_controller(
    environment: dict[str, str], tmp_path: Path, home: Path, onprem: str
) -> None:
    words = [sys.executable, "-m", "hybrid.cli.main", "up", onprem, "--foreground"]
    with subprocess.Popen(
        words, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        wait_for_record(home)
        assert record_of(home).pid == process.pid

        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=60) == 0
    assert discover.read_record(home / "lab") is None


def test_foreground_on_a_terminal_logs_for_people(
    environment: dict[str, str], tmp_path: Path, home: Path, onprem: str
) -> None:
    words = [sys.executable, "-m", "hybrid.cli.main", "up", onprem, "--foreground"]
    with Terminal(words, env=environment, cwd=tmp_path) as terminal:
        terminal.wait_for("pretty=True")
        wait_for_record(home)
        terminal.type("\x03")

        assert terminal.finish() == 0


def test_a_taken_port_of_the_lab_is_told_by_doctor(start: Run, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        (tmp_path / "port.yaml").write_text(f"{ONPREM}head: {{port: {port}}}\n")

        shown = start("doctor", "port.yaml")

    assert f"taken: head.port {port}" in shown.out
    assert shown.code == 1
