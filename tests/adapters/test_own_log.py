"""The controller's log file has a limit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import os, subprocess, sys
from pathlib import Path
from hybrid.adapters.own_log import OwnLog

path, count = Path(sys.argv[1]), int(sys.argv[2])
own = OwnLog(path, limit_bytes=1000)
for number in range(count):
    print(f"line {number}", file=sys.stderr)
    own.keep_small()
os.write(2, b"straight to the descriptor\\n")
subprocess.run([sys.executable, "-c", "print('from a child', flush=True)"], check=True)
"""


def run(path: Path, *, sink: Path, count: int = 1_000) -> None:
    with sink.open("ab") as log:
        subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(path), str(count)],
            stdout=log,
            stderr=log,
            check=True,
        )


def test_a_full_log_is_put_aside_and_a_new_one_is_begun(tmp_path: Path) -> None:
    path = tmp_path / "controller.log"

    run(path, sink=path)

    before = (tmp_path / "controller.log.1").read_text().splitlines()
    now = path.read_text().splitlines()
    assert now[-2:] == ["straight to the descriptor", "from a child"]
    numbers = [int(line.split()[1]) for line in (*before, *now[:-2])]
    assert numbers == list(range(numbers[0], 1_000)), "no line is lost between the two"
    assert all(p.stat().st_size < 1_100 for p in tmp_path.iterdir())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["controller.log", "controller.log.1"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_another_output_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "controller.log").write_text("of an earlier run")

    run(tmp_path / "controller.log", sink=tmp_path / "elsewhere")

    assert len((tmp_path / "elsewhere").read_text().splitlines()) == 1_002
    assert (tmp_path / "controller.log").read_text() == "of an earlier run"


def test_a_log_that_cannot_be_begun_is_tried_again(tmp_path: Path) -> None:
    """As on a full disk; a crash between the two steps leaves the same."""
    path = tmp_path / "controller.log"
    sink = tmp_path / "controller.log.1"

    run(path, sink=sink)

    assert path.read_text().endswith("from a child\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_does_not_end_the_program(tmp_path: Path) -> None:
    program = "from pathlib import Path; from hybrid.adapters.own_log import OwnLog; import sys; "
    program += "OwnLog(Path(sys.argv[1]), limit_bytes=0).keep_small(); print('went on')"

    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "x")],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            check=True,
        )

    assert done.stdout == "went on\n"
