"""Tests of the scripts: what they say on a machine that lacks something."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = [path for path in [*(ROOT / "scripts").rglob("*"), ROOT / ".ci" / "run"] if path.is_file()]
TO_RUN = sorted(path for path in FILES if path.read_bytes().startswith(b"#!/usr/bin/env bash\n"))
TO_SOURCE = sorted(path for path in FILES if path.suffix == ".sh" and path not in TO_RUN)


def bare_machine(folder: Path, *programs: str) -> dict[str, str]:
    """Return an environment whose PATH leads to a few programs only."""
    for program in ("bash", "cat", "cut", "dirname", "env", "id", "mkdir", "rm", *programs):
        place = shutil.which(program)
        assert place
        (folder / program).symlink_to(place)
    return {"PATH": str(folder), "HOME": str(folder)}


@pytest.mark.parametrize(
    "path", [*TO_RUN, *TO_SOURCE], ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_script_is_valid_and_marked_for_its_use(path: Path) -> None:
    assert os.access(path, os.X_OK) == (path in TO_RUN)
    subprocess.run(["bash", "-n", str(path)], check=True)


@pytest.mark.parametrize("old", [False, True], ids=["none", "too-old"])
def test_a_machine_without_a_new_python_is_told_what_to_install(tmp_path: Path, old: bool) -> None:
    env = bare_machine(tmp_path)
    if old:  # answers the question for its version with no
        (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "python3").chmod(0o755)

    done = subprocess.run(
        ["bash", str(ROOT / "scripts" / "test")], env=env, capture_output=True, text=True
    )

    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_missing_programs_are_named_and_stop_ci_only(tmp_path: Path, ci: str, code: int) -> None:
    env = {**bare_machine(tmp_path), "CI": ci}
    # The checks look in /usr too, so whatever this machine has is hidden.
    functions, _, call = (ROOT / "scripts/lib/system.sh").read_text().rpartition("hybrid_system")
    script = f"set -euo pipefail\n{functions}\nhybrid_has() {{ return 1; }}\nhybrid_system{call}"

    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True)

    assert done.returncode == code
    assert "Missing on this machine: postgresql iproute2 openssh-server" in done.stderr
