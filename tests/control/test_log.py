"""Tests of the log: what it does when it cannot be written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
from hybrid.control import log

log.configure(is_pretty=False)
for number in range(2000):
    log.get("test").warning("told", number=number)
print("went on")
"""


def run(log: Path) -> str:
    with log.open("ab") as sink:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, stderr=sink, text=True
        )
    return done.stdout.strip()


def test_the_log_is_one_object_a_line(tmp_path: Path) -> None:
    assert run(tmp_path / "log") == "went on"

    lines = (tmp_path / "log").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == list(range(2000))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_costs_lines_of_the_log_and_not_the_controller() -> None:
    assert run(Path("/dev/full")) == "went on"
