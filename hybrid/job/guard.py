"""Ends the processes of a job that left its process group, as workers of torchrun do.

Run as a file by the wrapper's guard when the wrapper has ended: standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def marked(mark: str) -> Iterator[int]:
    """Yield the processes that were started with `NAME=value` in their environment."""
    wanted = mark.encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has ended, or belongs to somebody else
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


def end(mark: str) -> None:
    """Kill the marked processes and what they start meanwhile, except the caller and its parent."""
    spared = {os.getpid(), os.getppid()}
    for _ in range(100):
        found = [pid for pid in marked(mark) if pid not in spared]
        if not found:
            return
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    end(sys.argv[1])
    # The mark is the folder of the notes, and its owner may have been killed.
    shutil.rmtree(sys.argv[1].partition("=")[2], ignore_errors=True)
