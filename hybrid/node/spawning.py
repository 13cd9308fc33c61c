"""Running Ray's commands as children of the node's own program."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from hybrid.node.environment import node_environment
from hybrid.node.orders import Orders

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
"""What the node's program waits for. Its children must hear them as usual."""


def spawn(command: list[str], orders: Orders, ray_token: str, output: Path) -> int:
    """Start a command of Ray's in the node's environment and return its process id.

    Args:
        command: Its first word is the interpreter that has Ray.
        orders: Of the node.
        ray_token: The cluster's token, `""` for none.
        output: Replaced by what the command writes.

    Raises:
        OSError: It cannot be started.
    """
    env = node_environment(
        os.environ, orders.env, tag=orders.tag, ray_token=ray_token, python=command[0]
    )
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawnp(
        command[0],
        command,
        env,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsigmask=[],
        setsigdef=[signal.SIGPIPE, *SIGNALS],
    )
