"""Starting a node from another program of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from hybrid.node import __main__ as program
from hybrid.node import guardian
from hybrid.node.environment import TAG
from hybrid.node.folder import BadFolderError, Folder, write_json

_LIMIT_S = 60.0


class StartError(Exception):
    """The node's own program could not be started; the message says why."""


def start(path: Path, orders: Mapping[str, object]) -> None:
    """Write a node's orders and start its program, unless that runs; returns once it has begun.

    From then on pid.json is there, and ports.json when the command has places for ports.

    Raises:
        StartError: It did not start.
    """
    folder = Folder(path)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(path / "node.json", orders)
        folder.take_back_stop()
        tag = folder.orders().tag
        done = subprocess.run(
            [sys.executable, "-P", str(program.__file__), "start", str(path)],
            # The mark from the first moment: a stop finds even a process without pid.json.
            env={**os.environ, TAG: tag},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
            start_new_session=True,  # Ctrl-C in the caller's terminal is not meant for it
        )
    except (OSError, BadFolderError, subprocess.TimeoutExpired) as err:
        raise StartError(str(err)) from err
    if done.returncode not in (guardian.EXIT_OK, guardian.EXIT_TAKEN):
        raise StartError(done.stderr.strip() or f"exit code {done.returncode}")
