"""The cloud takes the machine back: what is read, and what is tried, on clocks of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hybrid.node import notice
from hybrid.node.interruption import Interruption
from hybrid.node.notice import AGAIN_S, ATTEMPT_S, LEAST_WINDOW_S, Draining, Notice
from hybrid.node.orders import Takeback

NOW_S = 1_790_000_000.0
NODE_ID = "0123456789abcdef" * 3 + "01234567"
COMMAND = ("ray", "--node-id={node_id}", "--message={message}", "--left={left_s}")


@pytest.mark.parametrize(
    ("content", "at_s"),
    [
        ("1790000120 aws-terminate", 1_790_000_120),
        ("1790000030 gcp-preempted\n", 1_790_000_030),
        ("1790000030.25 x", 1_790_000_030),
    ],
)
def test_a_notice_is_a_deadline_and_a_word(tmp_path: Path, content: str, at_s: float) -> None:
    (tmp_path / "notice").write_text(content)

    told = notice.read(tmp_path / "notice")

    assert told == Notice(at_s, content.split()[1])


@pytest.mark.parametrize(
    "content",
    [
        "",
        "1790000120",
        "1790000120 ",
        "1790000120000 milliseconds",
        "17900 x",
        "-1790000120 x",
        "1e9 x",
        "inf x",
        "2026-09-21T14:00:00Z aws",
        "1790000120 two words",
        "1790000120 Aws",
        "1790000120 $(reboot)",
        "1790000120 x\n1790000121 y",
        " 1790000120 x",
        "1790000120 " + "x" * 200,
        "<html>",
        "\udcff",
    ],
)
def test_anything_else_is_no_notice(tmp_path: Path, content: str) -> None:
    (tmp_path / "notice").write_bytes(content.encode(errors="surrogateescape"))

    assert notice.read(tmp_path / "notice") is None
    assert notice.read(tmp_path / "none") is None


def test_values_are_filled_in_once_and_cannot_bring_places_of_their_own() -> None:
    filled = notice.fill(["{a}-{b}", "{c}"], {"a": "{b}", "b": "2"})

    assert filled == ["{b}-2", "{c}"]


def test_a_process_that_names_no_node_has_no_id() -> None:
    assert notice.node_id(os.getpid()) == ""
    assert notice.node_id(2**22 + 1) == ""


@pytest.fixture
def raylet_pid() -> Iterator[int]:
    """A process with the command line of a raylet."""
    words = [sys.executable, "-c", "print(flush=True); input()", f"--node_id={NODE_ID}"]
    with subprocess.Popen(words, stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()  # before that it may still look like us
        yield process.pid
        process.kill()


class Bench:
    """A draining with clocks and children that the test owns."""

    def __init__(self, raylet_pid: int, *, in_s: float = 120.0) -> None:
        self.passed_s = 0.0
        self.commands: list[Sequence[str]] = []
        self.killed: list[int] = []
        self.exit_codes: dict[int, int] = {}
        self.broken = ""
        self.draining = Draining(
            Notice(NOW_S + in_s, "aws-terminate"),
            COMMAND,
            raylet_pid=raylet_pid,
            start=self._start,
            end=self.killed.append,
            last_words=lambda: "no such node",
            wall_s=lambda: NOW_S,
            monotonic_s=lambda: 1000.0 + self.passed_s,
        )

    def _start(self, command: Sequence[str]) -> int:
        if self.broken:
            raise OSError(self.broken)
        self.commands.append(command)
        return len(self.commands)

    def step(self, after_s: float = 0.0) -> None:
        self.passed_s += after_s
        self.draining.step(self.exit_codes)

    def end_child(self, code: int) -> None:
        self.exit_codes[len(self.commands)] = code


def test_ray_is_told_at_once_which_node_why_and_until_when(raylet_pid: int) -> None:
    bench = Bench(raylet_pid)

    bench.step()
    bench.step(3)
    bench.end_child(0)
    bench.step(1)
    bench.step(600)

    said = "the cloud takes this machine back at 2026-09-21T14:15:20Z (aws-terminate)"
    assert bench.commands == [["ray", f"--node-id={NODE_ID}", f"--message={said}", "--left=120"]]
    assert bench.draining.problem.startswith(f"{said}; Ray drains the node")
    assert bench.killed == []


def test_what_fails_is_tried_again_with_the_time_that_is_left(raylet_pid: int) -> None:
    bench = Bench(raylet_pid)
    bench.step()
    bench.end_child(1)
    bench.step(5)
    assert "not asked to drain the node yet" in bench.draining.problem
    assert "no such node" in bench.draining.problem

    bench.step(AGAIN_S)
    bench.end_child(0)
    bench.step(1)

    assert [command[-1] for command in bench.commands] == ["--left=120", "--left=114"]
    assert "Ray drains the node" in bench.draining.problem


def test_a_call_that_hangs_is_ended_and_tried_again(raylet_pid: int) -> None:
    bench = Bench(raylet_pid)
    bench.step()
    bench.step(ATTEMPT_S - 0.1)
    assert bench.killed == []

    bench.step(0.1)
    bench.end_child(-9)
    bench.step(AGAIN_S)

    assert bench.killed == [1]
    assert len(bench.commands) == 2


def test_it_is_given_up_when_the_machine_should_be_gone(raylet_pid: int) -> None:
    bench = Bench(raylet_pid, in_s=40)
    bench.broken = "cannot fork"
    for _ in range(20):
        bench.step(2)

    bench.broken = ""
    bench.step(60)

    assert bench.commands == []
    assert "could not be asked to drain the node: cannot fork" in bench.draining.problem


def test_a_deadline_that_seems_past_is_still_a_reason_to_drain(raylet_pid: int) -> None:
    """Clocks differ, and Ray takes 0 seconds for no deadline at all."""
    bench = Bench(raylet_pid, in_s=-500)

    bench.step()
    bench.end_child(1)
    bench.step(LEAST_WINDOW_S - 5)
    bench.step(AGAIN_S)

    assert [command[-1] for command in bench.commands] == ["--left=1", "--left=1"]


def test_without_an_id_of_the_node_nothing_is_run() -> None:
    bench = Bench(os.getpid())

    bench.step()

    assert bench.commands == []
    assert "does not say its node's id" in bench.draining.problem


# --- a pretended machine is taken back ---------------------------------------------------------


def test_a_pretended_machine_is_told_before_it_is_taken(tmp_path: Path) -> None:
    passed_s = 0.0
    interruption = Interruption(
        Takeback(after_s=60, notice_s=20),
        tmp_path / "notice",
        wall_s=lambda: NOW_S + passed_s,
        monotonic_s=lambda: 5.0 + passed_s,
    )
    told: list[tuple[float, bool, Notice | None]] = []
    for passed_s in (0.0, 39.0, 41.0, 59.0, 60.0):  # the clocks read it
        is_over = interruption.step()
        told.append((passed_s, is_over, notice.read(tmp_path / "notice")))

    at_end = Notice(NOW_S + 60, "local-interrupt")
    assert told == [
        (0.0, False, None),
        (39.0, False, None),
        (41.0, False, at_end),
        (59.0, False, at_end),
        (60.0, True, at_end),
    ]
