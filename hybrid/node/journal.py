"""What a node writes down for people."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_LAST_BYTES = 20_000
_LAST_LINES = 12
_LAST_CHARS = 1500
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def log(message: str) -> None:
    """Write a line to the node's log; a full disk loses it."""
    with suppress(OSError):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        os.write(sys.stderr.fileno(), f"{stamp} {message}\n".encode())


def describe_exit(code: int) -> str:
    """Return how a process ended: exit code, or minus the signal's number."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def last_text(output: Path) -> str:
    """Return the last 20 kB of what a command wrote; `""` when it cannot be read."""
    try:
        return _end(output)
    except OSError:
        return ""


def last_words(output: Path) -> str:
    """Return the end of what a command wrote, as it may be shown: without colours."""
    try:
        text = _end(output)
    except OSError as err:
        return f"(not readable: {err.strerror})"
    lines = [line.rstrip() for line in _COLOURS.sub("", text).splitlines() if line.strip()]
    return "\n".join(lines[-_LAST_LINES:])[-_LAST_CHARS:] or "(none)"


def _end(output: Path) -> str:
    with output.open("rb") as file:  # it may be large
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_BYTES))
        return file.read(_LAST_BYTES).decode(errors="replace")
