"""Ending a node from outside, and asking whether it lives."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from hybrid.node import processes, scratch
from hybrid.node.ending import end_all
from hybrid.node.environment import TAG
from hybrid.node.folder import BadFolderError, Folder, Phase, Status
from hybrid.node.processes import Process

GRACE_S = 5.0
"""Time for the node's own program to end everything; it needs 3 s for a slow raylet."""

_POLL_S = 0.02


def is_alive(path: Path) -> bool:
    """Return whether the program that looks after the node lives."""
    return Folder(path).supervisor() is not None


def leftovers(path: Path) -> list[Process]:
    """Return every live process of the node, also when nobody looks after it any more.

    Raises:
        BadFolderError: The folder does not say how its processes are marked.
    """
    tagged = processes.with_setting(TAG, Folder(path).tag())
    below = processes.descendants([process.pid for process in tagged])
    return list({p.pid: p for p in (*tagged, *below) if p.pid != os.getpid()}.values())


def stop(path: Path, *, grace_s: float = GRACE_S) -> tuple[Process, ...]:
    """End the node for good and return the processes that would not end.

    Works also after the node's own program was killed. The node does not start again until
    `Folder.take_back_stop`. A folder that does not exist has nothing to end.

    Args:
        path: The node's folder.
        grace_s: How long the node's own program may take before it is ended from outside.

    Raises:
        BadFolderError: The folder exists but does not say how its processes are marked.
    """
    folder = Folder(path)
    if not path.is_dir():
        return ()
    with suppress(OSError):  # a full disk must not keep a node alive
        folder.order_stop()
    supervisor = folder.supervisor()
    if supervisor is not None:
        processes.send(supervisor, signal.SIGTERM)
        end_s = time.monotonic() + grace_s
        while processes.is_alive(supervisor) and time.monotonic() < end_s:
            time.sleep(_POLL_S)
    left = end_all(lambda: leftovers(path))
    if not left:
        _tidy(folder)
    return left


def _tidy(folder: Folder) -> None:
    with suppress(BadFolderError, OSError):
        scratch.remove(folder.orders().temp_dir)
    before = folder.status()
    if before is None or before.phase in (Phase.STOPPED, Phase.FAILED, Phase.EXITED):
        return
    with suppress(OSError):
        folder.write_status(Status(Phase.STOPPED, before.problem, at_s=time.time()))
