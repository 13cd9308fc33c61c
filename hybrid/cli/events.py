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
_COLUMNS = (Column("TIME"), Column("EVENT"), Column("ABOUT"), Column("MESSAGE", is_long=True))
# For rows that come one by one: wide enough for what is usual.
_WIDTHS = (8, 20, 14, 0)


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
    if follow and not json:
        output.lines([_line([column.name for column in _COLUMNS])])
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
    from hybrid.adapters.clock import SystemClock

    now_s = SystemClock().now_s()
    rows = [_row(event, now_s) for event in found]
    if is_following:
        output.lines([_line(row) for row in rows])
    elif rows:
        output.show(table(_COLUMNS, rows))
    else:
        output.show(text("No events."))


def _row(event: Event, now_s: float) -> Sequence[str]:
    at = words.moment(event.at_s, now_s)
    return (at, event.kind, event.subject or words.NONE, event.message)


def _line(row: Sequence[str]) -> str:
    """Return a row whose columns stand where those of most other rows will stand."""
    padded = [words.safe(cell).ljust(width) for cell, width in zip(row, _WIDTHS, strict=True)]
    return "  ".join(padded).rstrip()
