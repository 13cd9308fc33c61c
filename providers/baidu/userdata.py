"""The script that a new instance runs once: it starts this program's node, and no more.

It installs nothing: the image has Python, Ray and this program. Of secrets it holds the
one-time join token only.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import textwrap

from hybrid.core.bootstrap import (
    Preflight,
    ray_node_command,
    ray_node_environment,
    ray_node_expected,
    rented_node,
    shell_report,
)
from hybrid.core.models import LaunchSpec, Shape

MAX_BYTES = 16 * 1024
"""Baidu does not say how much it takes; this is the least of all clouds."""

_FOLDER = "/var/lib/hybrid/node"
_RAY_DIR = "/tmp/hybrid-node/ray"  # noqa: S108  # on the instance; sockets want short paths
_JOIN_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,512}")
_COLUMNS = 76


def script(
    spec: LaunchSpec,
    shape: Shape,
    *,
    python: str,
    join_token: str,
    preflight: Preflight | None = None,
) -> str:
    """Return the script of one instance. Equal arguments give equal text.

    Raises:
        ValueError: A value cannot be part of it, or it is too long.
    """
    if not _JOIN_TOKEN.fullmatch(join_token):
        raise ValueError("the join token has characters that cannot be passed on")
    # No file of a lease: the instance's own expiry is Baidu's release time, which `extend`
    # moves, and a date written here could not be moved.
    preflight = preflight or Preflight()
    plan = rented_node(spec, shape, python=python, temp_dir=_RAY_DIR, preflight=preflight)
    node = {
        "id": spec.instance_id,
        "cluster_id": spec.cluster_id,
        "role": "instance",
        "command": ray_node_command(plan),
        "env": ray_node_environment(plan),
        "temp_dir": _RAY_DIR,
        "join": {
            "url": spec.controller_url,
            "instance_id": spec.instance_id,
            "join_token_file": f"{_FOLDER}/join_token",
        },
        "expected": ray_node_expected(plan, spec, preflight),
    }
    text = _TEXT.format(
        folder=_FOLDER,
        # In base64 nothing of it can mean anything to the shell.
        node=_encoded(json.dumps(node, sort_keys=True)),
        join_token=_encoded(join_token),
        python=shlex.quote(python),
        tell=shell_report(
            spec, join_token=join_token, python=python, output=f"{_FOLDER}/start.out"
        ),
    )
    if len(text.encode()) > MAX_BYTES:
        raise ValueError(f"user data has {len(text.encode())} bytes; at most {MAX_BYTES} fit")
    return text


_TEXT = """\
#!/bin/sh
# Starts the node of a Ray cluster; written by hybrid.
set -eu
umask 077
mkdir -p {folder}
base64 -d > {folder}/node.json <<'END'
{node}
END
base64 -d > {folder}/join_token <<'END'
{join_token}
END
{tell}{python} -P -m hybrid.node start {folder} > {folder}/start.out 2>&1 || tell
"""


def _encoded(text: str) -> str:
    return "\n".join(textwrap.wrap(base64.b64encode(text.encode()).decode(), _COLUMNS))
