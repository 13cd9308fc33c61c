"""Asking a controller for the end of its cluster, once the user has seen what ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.cli import output, words
from hybrid.cli.asking import confirm

if TYPE_CHECKING:
    from hybrid.client import Client
    from hybrid.core.views import StatusView

_ALL_JOBS = 10_000


def ask(client: Client, drain_s: float | None, *, is_yes: bool) -> None:
    """Show what closing ends, have it confirmed, and ask the controller to close.

    Raises:
        StopError: The user said no, or cannot be asked.
    """
    view = client.status()
    is_closing = view.controller.state == "closing"
    if not is_closing or drain_s is not None:
        output.lines([f"Closing cluster {words.safe(view.cluster.name)} ends:"])
        output.lines([f"  {words.safe(line)}" for line in _doomed(client, view)])
        until = f" after {words.duration(drain_s)}" if drain_s else " at once"
        confirm(f"End this{until} and stop all nodes?", is_yes=is_yes)
    _ask_to_close(client, drain_s)


def _ask_to_close(client: Client, drain_s: float | None) -> None:
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
        for job in client.jobs(limit=_ALL_JOBS, live=True).jobs
        if not job.state.is_ended  # an older controller does not know `live`
    ]
    rented = [
        f"instance {item.instance_id} ({item.instance_type}), {words.rate(item.usd_per_hour)}"
        for item in view.instances
        if item.ended_at_s is None
    ]
    return [*busy, *rented] or ["no job, and nothing is rented"]
