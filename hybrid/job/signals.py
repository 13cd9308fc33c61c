"""Which of a job's processes handle a signal: one that does not would die of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def tell(number: int, pids: Iterator[int]) -> int:
    """Send a signal to the processes that handle it; return how many these are."""
    count = 0
    for pid in pids:
        with suppress(OSError):
            if handles(pid, number):
                os.kill(pid, number)
                count += 1
    return count


def handles(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal. Raises `OSError` if it is gone."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def members(group: int) -> Iterator[int]:
    """Yield the processes of a process group."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if int(fields[2]) == group:
                    yield int(entry.name)


SAVE_SIGNALS = {"USR1": signal.SIGUSR1, "TERM": signal.SIGTERM}
"""What a job may ask to get when it should save."""
