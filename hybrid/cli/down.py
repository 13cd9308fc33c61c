"""`hybrid down`: return everything rented, stop all nodes, and see it through."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.config import File
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.options import Cluster, Yes, chosen, duration_option, seconds

if TYPE_CHECKING:
    from hybrid.cli.closing import Target
    from hybrid.client import Client
    from hybrid.client.discover import Record
    from hybrid.core.views import StatusView

_CLOSE_S = 600.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("down")(down)


def down(
    context: typer.Context,
    file: File = None,
    yes: Yes = False,
    drain: Annotated[
        str, duration_option("--drain", help="Let running work go on for this long.", default="0s")
    ] = "0s",
    timeout: Annotated[
        str, duration_option("--timeout", help="Stop watching after this long, beside --drain.")
    ] = "",
    _cluster: Cluster = "",
) -> None:
    """Close a cluster: return everything rented, stop all nodes. Twice is fine."""
    from hybrid.cli import closing

    target = closing.find(file, chosen(context))
    if target is None:
        output.lines(["No hybrid cluster is running, and nothing is left of one."])
        return
    if target.record is None:
        target = replace(target, record=closing.wait_for_start(target.state_dir))
    if target.is_clean():
        output.lines([f"Cluster {target.name} is not running, and nothing of it is left."])
        return
    drain_s = seconds(drain) or 0.0
    timeout_s = (seconds(timeout) or _CLOSE_S) + drain_s
    try:
        if target.record is not None:
            is_gone = _close_running(target.record, drain_s, timeout_s, is_yes=yes)
        else:
            is_gone = _close_dead(target, timeout_s, is_yes=yes)
    except KeyboardInterrupt:
        output.say("\nInterrupted. What was asked for goes on; `hybrid down` again watches it.")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _conclude(target, is_gone=is_gone)


def _close_running(record: Record, drain_s: float, timeout_s: float, *, is_yes: bool) -> bool:
    """Ask the controller to close, and follow it. Returns whether it has ended."""
    from hybrid.cli import controller
    from hybrid.cli.asking import confirm
    from hybrid.cli.progress import Progress
    from hybrid.client import Client

    with Client(cluster=str(record.state_dir)) as client:
        view = client.status()
        if view.controller.state != "closing":
            output.lines([f"Closing cluster {record.cluster} ends:"])
            output.lines([f"  {words.safe(line)}" for line in _doomed(client, view)])
            until = f" after {words.duration(drain_s)}" if drain_s else " at once"
            confirm(f"End this{until} and stop all nodes?", is_yes=is_yes)
        _ask_to_close(client, drain_s)
    with Progress(f"Closing {record.cluster}") as progress:
        return controller.wait_until_gone(
            record.pid, record.url, show=progress.show, timeout_s=timeout_s
        )


def _ask_to_close(client: Client, drain_s: float) -> None:
    """Ask; a lost answer is no matter, since the controller's end is watched anyway."""
    from hybrid.client import NoClusterError
    from hybrid.client.errors import UnhealthyError, UnreachableError

    try:
        output.say(words.safe(client.down(drain_s).message))
    except UnhealthyError:  # it answered, and it was a no
        raise
    except (UnreachableError, NoClusterError) as error:
        output.say(f"No answer to that ({words.safe(str(error))}).")


def _doomed(client: Client, view: StatusView) -> list[str]:
    """Return a line for each thing that closing ends and somebody may miss."""
    busy = [
        f"job {job.job_id} ({job.spec.name or job.spec.entrypoint}), {job.state.value}"
        for job in client.jobs().jobs
        if not job.state.is_ended
    ]
    rented = [
        f"instance {item.instance_id} ({item.instance_type}), {words.rate(item.usd_per_hour)}"
        for item in view.instances
        if item.ended_at_s is None
    ]
    return [*busy, *rented] or ["no job, and nothing is rented"]


def _close_dead(target: Target, timeout_s: float, *, is_yes: bool) -> bool:
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
    confirm("Start a controller that ends and returns all of it?", is_yes=is_yes)
    started = controller.start(target.config, target.state_dir, is_closing=True)
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
    output.lines([f"Cluster {target.name} is closed: nothing is rented, no node is left."])
