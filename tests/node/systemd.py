"""What systemd itself says of a unit file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.lacking import lacking


def verified(path: Path, *more: str) -> str:
    """Return what systemd has to say against a unit file; `""` for nothing."""
    program = shutil.which("systemd-analyze")
    if program is None:
        lacking("systemd-analyze is not installed: apt-get install systemd")
    done = subprocess.run(
        [program, "verify", "--man=no", "--recursive-errors=no", *more, str(path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done
    return "\n".join(line for line in done.stderr.splitlines() if path.name in line)
