"""`hybrid down`: return everything rented, stop all nodes, and see it through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.options import Cluster, Yes, agree, chosen, duration_option, seconds

if TYPE_CHECKING:
    from hybrid.cli.closing import Target
    from hybrid.client.discover import Record

_CLOSE_S = 600.0

WhoseFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="Whose cluster; default: HYBRID_CLUSTER, HYBRID_CONFIG, ./hybrid.yaml, or the one "
        "that runs.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("down")(down)


def down(
    context: typer.Context,
    file: WhoseFile = None,
    yes: Yes = False,
    drain: Annotated[
        str,
        duration_option(
            "--drain",
            help="Let running work go on for this long; default: end it, or as was asked before.",
        ),
    ] = "",
    timeout: Annotated[
        str, duration_option("--timeout", help="Stop watching after this long, beside --drain.")
    ] = "",
    _cluster: Cluster = "",
) -> None:
    """Close a cluster: return everything rented, stop all nodes. Twice is fine."""
    from hybrid.cli import closing, config, faraway

    drain_s = seconds(drain)
    given_s = seconds(timeout)
    timeout_s = (_CLOSE_S if given_s is None else given_s) + (drain_s or 0.0)
    settings = config.load(file) if file is not None else None
    if settings is not None:
        agree(context, settings)
    elif not chosen(context) and (url := faraway.address()):
        faraway.close(url, drain_s, timeout_s, is_yes=yes)
        return
    target = closing.find(settings, chosen(context))
    if target is None:
        output.lines(["No hybrid cluster is running, and nothing is left of one."])
        return
    if target.record is None:
        target = replace(target, record=closing.wait_for_start(target.state_dir))
    if target.is_clean():
        output.lines([f"Cluster {target.name} is not running, and nothing of it is left."])
        return
    try:
        if target.record is not None:
            is_gone = _close_running(target.record, drain_s, timeout_s, is_yes=yes)
        else:
            is_gone = _close_dead(target, drain_s, timeout_s, is_yes=yes)
    except KeyboardInterrupt:
        output.say("\nInterrupted. What was asked for goes on; `hybrid down` again watches it.")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _conclude(target, is_gone=is_gone)


def _close_running(
    record: Record, drain_s: float | None, timeout_s: float, *, is_yes: bool
) -> bool:
    """Ask the controller to close, and follow it. Returns whether it has ended."""
    from hybrid.cli import controller, ending
    from hybrid.cli.progress import Progress
    from hybrid.client import Client

    with Client(cluster=str(record.state_dir)) as client:
        ending.ask(client, drain_s, is_yes=is_yes)
    with Progress(f"Closing {record.cluster}") as progress:
        return controller.wait_until_gone(
            record.pid, record.url, show=progress.show, timeout_s=timeout_s
        )


def _close_dead(target: Target, drain_s: float | None, timeout_s: float, *, is_yes: bool) -> bool:
    """Start a controller that only closes, and follow it. Returns whether it has ended."""
    from hybrid.cli import controller
    from hybrid.cli.asking import confirm
    from hybrid.cli.progress import Progress

    left = target.left() or ["nothing on this machine; the clouds will be asked"]
    output.lines([f"The controller of {target.name} is gone. Left of the cluster:"])
    output.lines([f"  {line}" for line in left])
    if target.config is None or not target.config.exists():
        known = f" ({target.config} is gone)" if target.config else ""
        raise StopError(
            f"the configuration of {target.name} is not known here{known}; "
            "run `hybrid down FILE` with its file",
            ExitCode.USAGE,
        )
    if target.ledger_problem:
        raise StopError(target.ledger_problem, ExitCode.USAGE)
    confirm("Start a controller that ends and returns all of it?", is_yes=is_yes)
    started = controller.start(target.config, target.state_dir, is_closing=True, drain_s=drain_s)
    with Progress(f"Closing {target.name}") as progress:
        is_gone = controller.wait_until_gone(
            started.process.pid,
            None,
            show=progress.show,
            timeout_s=timeout_s,
            process=started.process,
            state_dir=target.state_dir,
        )
    if is_gone and started.process.returncode:
        raise controller.death(started, started.process.returncode)
    return is_gone


def _conclude(target: Target, *, is_gone: bool) -> None:
    """Say how it ended. Raises `StopError` unless nothing is left."""
    from hybrid.cli import remains
    from hybrid.cli.controller import LOG_NAME

    log = target.state_dir / LOG_NAME
    if not is_gone:
        raise StopError(
            f"closing {target.name} takes longer; it goes on. `hybrid status` shows it, the log "
            f"is {log}, `hybrid down` watches again",
            ExitCode.UNHEALTHY,
        )
    left = target.left()
    if remains.is_crashed(target.state_dir):
        left.insert(0, "the controller died before it had finished")
    if left:
        lines = "\n".join([*left, f"See {log}, and run `hybrid down` again."])
        raise StopError(f"cluster {target.name} was not closed; this is left:\n{lines}")
    remains.note_ledger(target.state_dir, None)
    output.lines([f"Cluster {target.name} is closed: nothing is rented, no node is left."])
