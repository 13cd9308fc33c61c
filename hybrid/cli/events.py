"""`hybrid events`: what happened, once or as it happens."""

from __future__ import annotations

import json as json_text
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.options import Cluster, Json, connect, duration_option, seconds
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.client import Client
    from hybrid.core.models import Event

_PERIOD_S = 1.0
_PAGE = 1_000
_OLDEST = 10_000
_USUAL = 50


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("events")(events)


def events(
    context: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    since: Annotated[str, duration_option("--since", help="Not older than this.")] = "",
    subject: Annotated[
        str, typer.Option("--subject", "-s", help="About this instance, node or job only.")
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=_OLDEST,
            help=f"The last so many; {_USUAL}, or with --since all.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    _cluster: Cluster = "",
) -> None:
    """Show history, oldest first."""
    client = connect(context)
    since_s = seconds(since)
    count = limit or (_USUAL if since_s is None else _OLDEST)
    after = 0 if since_s is None else _first_since(client, since_s, subject, count)
    if json and not follow:
        output.write(client.read("events", after=after, limit=count, subject=subject))
        return
    page = client.events(after=after, limit=count, subject=subject)
    _print(page.events, is_json=json, is_following=follow)
    if follow:
        _follow(client, page.next_seq, subject, is_json=json)


def _first_since(client: Client, since_s: float, subject: str, count: int) -> int:
    """Return the number after which come the last `count` events that are young enough."""
    from hybrid.adapters.clock import SystemClock

    oldest_s = SystemClock().now_s() - since_s
    page = client.events(limit=_OLDEST, subject=subject)
    young = [event.seq for event in page.events if event.at_s >= oldest_s][-count:]
    return young[0] - 1 if young else page.next_seq


def _follow(client: Client, after: int, subject: str, *, is_json: bool) -> None:
    from hybrid.adapters.clock import SystemClock

    clock = SystemClock()
    while True:
        clock.sleep(_PERIOD_S)
        page = client.events(after=after, limit=_PAGE, subject=subject)
        if page.events:
            _print(page.events, is_json=is_json, is_following=True)
            after = page.next_seq


def _print(found: Sequence[Event], *, is_json: bool, is_following: bool) -> None:
    if is_json:
        output.lines(
            [json_text.dumps(event.model_dump(mode="json"), ensure_ascii=False) for event in found]
        )
        return
    if is_following:
        output.lines([_line(event) for event in found])
        return
    if not found:
        output.show(text("No events."))
        return
    from hybrid.adapters.clock import SystemClock

    now_s = SystemClock().now_s()
    columns = (
        Column("AGE", is_number=True),
        "EVENT",
        "ABOUT",
        Column("MESSAGE", is_long=True),
    )
    rows = (
        (words.age(event.at_s, now_s), event.kind, event.subject or words.NONE, event.message)
        for event in found
    )
    output.show(table(columns, rows))


def _line(event: Event) -> str:
    """Return one event on one line, with its time of day: ages would grow stale."""
    from datetime import UTC, datetime

    at = datetime.fromtimestamp(event.at_s, UTC).astimezone()
    about = f" {event.subject}" if event.subject else ""
    return words.safe(f"{at:%H:%M:%S} {event.kind}{about} {event.message}".rstrip())
