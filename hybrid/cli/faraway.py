"""`hybrid down` of a cluster on another machine, of which only the address is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hybrid.cli import output, words
from hybrid.cli.exits import ExitCode, StopError
from hybrid.client import discover

if TYPE_CHECKING:
    from collections.abc import Callable

    from hybrid.client import Client

_POLL_S = 0.5
_SILENT_S = 5.0
"""How long nobody may listen there before the controller counts as ended."""
_ALL_INSTANCES = 10_000


def address() -> str:
    """Return the URL in `HYBRID_ADDRESS`; `""` without one, or when it is of a cluster here."""
    given = discover.ENVIRONMENT.get("HYBRID_ADDRESS", "")
    return discover.url_of(given) if given and discover.record_at(given) is None else ""


def close(url: str, drain_s: float | None, timeout_s: float, *, is_yes: bool) -> None:
    """Close the cluster at `url` and follow it to its end.

    Raises:
        StopError: It takes longer, or it is not known that all was returned.
    """
    from hybrid.cli import ending
    from hybrid.cli.progress import Progress
    from hybrid.client import Client

    with Client(address=url) as client:
        name = words.safe(client.status().cluster.name)
        left_count = _rented_count(client)
        ending.ask(client, drain_s, is_yes=is_yes)
        try:
            with Progress(f"Closing {name}") as progress:
                left_count = _follow(client, left_count, show=progress.show, timeout_s=timeout_s)
        except KeyboardInterrupt:
            output.say("\nInterrupted. What was asked for goes on; `hybrid down` watches again.")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    if left_count:
        raise StopError(
            f"the controller at {url} has ended; when it was seen last, {left_count} of its "
            "rented instances were not returned yet. Run `hybrid down` on its machine, which "
            "looks what is left"
        )
    output.lines(
        [
            f"Cluster {name} at {url} is closed: its controller returned all that was rented, and "
            "has ended."
        ]
    )


def _follow(
    client: Client, left_count: int, *, show: Callable[[str], None], timeout_s: float
) -> int:
    """Follow a controller until it ends; return how much was rented when it was seen last."""
    from hybrid.cli.controller import CLOCK
    from hybrid.client.errors import UnhealthyError, UnreachableError

    end_s = CLOCK.monotonic_s() + timeout_s
    silent_since_s: float | None = None
    while CLOCK.monotonic_s() < end_s:
        CLOCK.sleep(_POLL_S)
        try:
            left_count = _rented_count(client)
            controller = client.status().controller
            show(controller.phase or controller.state)
            silent_since_s = None
        except UnhealthyError as error:
            show(words.safe(str(error)))
            silent_since_s = None
        except UnreachableError as error:
            show(words.safe(str(error)))
            if not _is_refused(error):  # a network that is down proves nothing
                silent_since_s = None
                continue
            now_s = CLOCK.monotonic_s()
            silent_since_s = now_s if silent_since_s is None else silent_since_s
            if now_s - silent_since_s >= _SILENT_S:
                return left_count
    raise StopError(
        f"closing the cluster at {client.address} takes longer; it goes on. `hybrid status` shows "
        "it, `hybrid down` watches again",
        ExitCode.UNHEALTHY,
    )


def _rented_count(client: Client) -> int:
    # from the ledger: `status` is as old as the last tick, and the last one is never told
    rows = client.instances(limit=_ALL_INSTANCES).instances
    return sum(row.ended_at_s is None for row in rows)


def _is_refused(error: BaseException | None) -> bool:
    """Return whether the machine answered that nobody listens there."""
    while error is not None and not isinstance(error, ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None
