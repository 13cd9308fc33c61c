"""What a person at a terminal sees: colour, width, watching, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybrid.cli.table import cell_count
from hybrid.core.errors import LedgerError
from hybrid.core.models import JobState
from tests.api import canned
from tests.cli.conftest import Lab
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow

HYBRID = [sys.executable, "-m", "hybrid.cli.main"]
COLOUR = "\x1b["


def plain(text: str) -> list[str]:
    """Return the lines without what steers the terminal."""
    import re

    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "").splitlines()


def test_a_terminal_gets_colour_unless_it_is_unwanted(
    lab: Lab, environment: dict[str, str], tmp_path: Path
) -> None:
    with Terminal([*HYBRID, "status"], env=environment, cwd=tmp_path) as terminal:
        terminal.finish()
        coloured = terminal.text
    env = environment | {"NO_COLOR": "1"}
    with Terminal([*HYBRID, "nodes"], env=env, cwd=tmp_path) as terminal:
        terminal.finish()
        sober = terminal.text

    assert "\x1b[32mbusy" in coloured
    assert "\x1b[3" not in sober  # bold headers may stay: NO_COLOR is about colour
    assert "busy" in sober


@pytest.mark.parametrize("columns", [60, 100])
def test_the_width_of_the_terminal_is_respected(
    lab: Lab, environment: dict[str, str], tmp_path: Path, columns: int
) -> None:
    with Terminal([*HYBRID, "status"], env=environment, cwd=tmp_path, columns=columns) as terminal:
        terminal.finish()

    assert max(cell_count(line) for line in plain(terminal.text)) <= columns


def test_watch_redraws_in_place_and_ends_with_ctrl_c(
    lab: Lab, environment: dict[str, str], tmp_path: Path
) -> None:
    with Terminal([*HYBRID, "status", "--watch"], env=environment, cwd=tmp_path) as terminal:
        terminal.wait_for("ready")
        lab.service.state, lab.service.phase = "closing", "returning 1 instance"
        terminal.wait_for("returning 1 instance")
        terminal.type("\x03")

        code = terminal.finish()

    assert code == 130
    assert "\x1b[1A" in terminal.text  # the cursor went up to draw again
    assert "Traceback" not in terminal.text
    assert terminal.text.rstrip("\r\n").endswith("\x1b[?25h") or "\x1b[?25h" in terminal.text


def test_watch_shows_a_controller_that_went_away_and_came_back(
    lab: Lab, environment: dict[str, str], tmp_path: Path
) -> None:
    with Terminal([*HYBRID, "status", "--watch"], env=environment, cwd=tmp_path) as terminal:
        terminal.wait_for("ready")
        lab.service.problem = LedgerError("ledger.db: the disk is full")
        terminal.wait_for("unknown: ledger.db: the disk is full")
        lab.service.problem, lab.service.state = None, "stalled"
        terminal.wait_for("stalled")
        terminal.type("\x03")

        assert terminal.finish() == 130


def test_watch_in_a_pipe_prints_a_line_per_change(
    lab: Lab, environment: dict[str, str], tmp_path: Path
) -> None:
    with subprocess.Popen(
        [*HYBRID, "status", "--watch"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        lab.service.cloud_node_count = 2
        second = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()

        assert process.wait() == 130
    assert first.startswith("ready: 1 cloud idle, 1 onprem busy, ")
    assert second.startswith("ready: 2 cloud idle, ")
    assert COLOUR not in first + second
    assert rest == ""


@pytest.mark.parametrize("words", [["logs", "-f", "j-running"], ["events", "-f"]])
def test_ctrl_c_ends_following_without_a_traceback(
    lab: Lab, environment: dict[str, str], words: list[str]
) -> None:
    lab.service.log_gate.clear()
    with subprocess.Popen(
        [*HYBRID, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()

        assert process.wait() == 130
    assert said == ""


def test_ctrl_c_on_the_quick_way_is_quiet_too(
    lab: Lab, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    gate = threading.Event()
    monkeypatch.setattr(canned, "sources", lambda: gate.wait(20) and ())
    with subprocess.Popen(
        [*HYBRID, "status", "--json"], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        time.sleep(2)  # until it waits for the answer
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()

        assert process.wait() == 130
    gate.set()
    assert said == ""


def test_ctrl_c_while_staying_with_a_job_says_that_it_goes_on(
    lab: Lab, environment: dict[str, str], tmp_path: Path
) -> None:
    words = [*HYBRID, "submit", "--wait", "--", "sleep", "9"]
    with Terminal(words, env=environment, cwd=tmp_path) as terminal:
        terminal.wait_for("Submitted j-")
        time.sleep(0.5)
        terminal.type("\x03")

        assert terminal.finish() == 130
    job = lab.service.jobs().jobs[0]
    assert f"{job.job_id} goes on" in terminal.text
    assert job.state is JobState.QUEUED


def test_events_follow_prints_new_events_as_lines_of_json(
    lab: Lab, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    older = canned.events()
    known = list(older[:6])
    monkeypatch.setattr(canned, "events", lambda: tuple(known))
    with subprocess.Popen(
        [*HYBRID, "events", "-f", "--json", "--limit", "1"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        known.append(older[6])
        second = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.stdout.read()

    assert (first["seq"], second["seq"]) == (6, 7)


def test_drain_asks_on_a_terminal(lab: Lab, environment: dict[str, str], tmp_path: Path) -> None:
    with Terminal([*HYBRID, "drain", "i-1"], env=environment, cwd=tmp_path) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type("y\n")

        assert terminal.finish() == 0
    assert [target for target, _, _ in lab.service.drains] == ["i-1"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_for_a_shell(
    environment: dict[str, str], tmp_path: Path, shell: str
) -> None:
    env = environment | {"_HYBRID_COMPLETE": f"source_{shell}"}

    shown = subprocess.run(HYBRID, env=env, capture_output=True, text=True)

    assert "_HYBRID_COMPLETE" in shown.stdout
    assert shown.returncode == 0


def test_completion_knows_commands_and_clusters(lab: Lab, environment: dict[str, str]) -> None:
    def completed(*typed: str) -> str:
        env = environment | {
            "_HYBRID_COMPLETE": "complete_bash",
            "COMP_WORDS": "hybrid " + " ".join(typed),
            "COMP_CWORD": str(len(typed)),
        }
        return subprocess.run(HYBRID, env=env, capture_output=True, text=True).stdout

    assert completed("sta").split() == ["status"]
    assert completed("--cluster", "l").split() == ["lab"]
    assert os.environ.get("COMP_WORDS") is None
