"""`hybrid env`: the variables with which Ray's own tools find a cluster and may talk to it."""

from __future__ import annotations

import json as json_text
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.options import Cluster, chosen, connect

if TYPE_CHECKING:
    from hybrid.core.views import ClusterInfo

NAMES = ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH")

_TOKEN_NAME = "ray_token"  # noqa: S105 - a file name


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("env")(env)


def env(
    context: typer.Context,
    unset: Annotated[bool, typer.Option("--unset", help="Print what takes them back.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    _cluster: Cluster = "",
) -> None:
    """Print the variables with which Ray's own tools use this cluster.

    For a shell: `eval "$(hybrid env)"`.
    """
    if unset:
        output.lines([f"unset {' '.join(NAMES)}"])
        return
    from hybrid.client import discover

    with connect(context) as client:
        info = client.status().cluster
    log_path = discover.find(cluster=chosen(context)).log_path
    variables = _variables(info, Path(log_path).parent if log_path else None)
    if json:
        output.lines([json_text.dumps(variables, ensure_ascii=False)])
        return
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    if sys.stdout.isatty():
        lines.append('# Run this to use them in this shell: eval "$(hybrid env)"')
    output.lines(lines)


def _variables(info: ClusterInfo, state_dir: Path | None) -> Mapping[str, str]:
    """Return the variables.

    Raises:
        StopError: Ray is not up, or its token is not on this machine.
    """
    if not info.head_address:
        raise StopError(
            "Ray's head has not started yet; `hybrid status` says how far it is",
            ExitCode.UNHEALTHY,
        )
    token_path = state_dir / _TOKEN_NAME if state_dir else None
    if token_path is None or not os.access(token_path, os.R_OK):
        where = f" ({token_path} cannot be read)" if token_path else ""
        raise StopError(
            f"Ray's token is in the cluster's state folder only{where}; run this on the "
            "controller's machine, as the user who started the cluster",
            ExitCode.USAGE,
        )
    values = (info.head_address, info.dashboard_url, "token", str(token_path))
    return dict(zip(NAMES, values, strict=True))
