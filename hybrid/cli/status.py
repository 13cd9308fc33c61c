"""`hybrid status`, once or watched."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output
from hybrid.cli.options import Cluster, Json, connect

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.client import Client
    from hybrid.core.views import StatusView

_PERIOD_S = 2.0
_GROWING = ("_s", "_usd", "tick_count")
_NUMBER = re.compile(r"\d+(\.\d+)?")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("status")(status)


def status(
    context: typer.Context,
    json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on until Ctrl-C.")] = False,
    _cluster: Cluster = "",
) -> None:
    """Show the whole cluster on one page."""
    client = connect(context)
    if watch:
        _watch(client, is_json=json)
    elif json:
        output.write(client.read("status"))
    else:
        from hybrid.cli.status_page import status_page

        output.show(*status_page(client.status()))


def _watch(client: Client, *, is_json: bool) -> None:
    if is_json:
        _watch_json(client)
    elif sys.stdout.isatty():
        _watch_page(client)
    else:
        _watch_lines(client)


def _watch_json(client: Client) -> None:
    """Print one answer per line, for programs; none that only time made another."""
    import json

    from hybrid.adapters.clock import SystemClock

    clock = SystemClock()
    last: object = None
    while True:
        content = client.read("status")
        timeless = _timeless(json.loads(content))
        if timeless != last:
            output.write(content)
            last = timeless
        clock.sleep(_PERIOD_S)


def _timeless(value: object) -> object:
    """Return an answer without what time alone changes: instants, ages, money, numbers in text."""
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if not key.endswith(_GROWING)}
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    return _NUMBER.sub("#", value) if isinstance(value, str) and " " in value else value


def _watch_page(client: Client) -> None:
    """Redraw the page in place; a controller that is away is shown, not fatal."""
    from rich.console import Group
    from rich.live import Live

    from hybrid.adapters.clock import SystemClock

    clock = SystemClock()
    page = _page_of(client.status())
    with Live(Group(*page), console=output.terminal(), auto_refresh=False) as live:
        while True:
            clock.sleep(_PERIOD_S)
            view, problem = _look(client)
            if view is not None:
                page = _page_of(view)
            live.update(Group(*page, *_trouble(problem)), refresh=True)


def _watch_lines(client: Client) -> None:
    """Print one line whenever something that matters has changed."""
    from hybrid.adapters.clock import SystemClock

    clock = SystemClock()
    last = ""
    view: StatusView | None = client.status()
    problem = ""
    while True:
        line = problem if view is None else _line_of(view)
        if line != last:
            output.lines([line])
            last = line
        clock.sleep(_PERIOD_S)
        view, problem = _look(client)


def _look(client: Client) -> tuple[StatusView | None, str]:
    """Return the status, or why it cannot be had now."""
    from hybrid.client.errors import NoClusterError, UnreachableError

    try:
        return client.status(), ""
    except (UnreachableError, NoClusterError) as error:
        return None, f"unknown: {error}"


def _page_of(view: StatusView) -> list[Part]:
    from hybrid.cli.status_page import status_page

    return status_page(view)


def _trouble(problem: str) -> list[Part]:
    from hybrid.cli.table import text

    return [text(""), text(problem, "bold red")] if problem else []


def _line_of(view: StatusView) -> str:
    """Return a line without ages, so that it changes only when the cluster does."""
    from collections import Counter

    from hybrid.cli import words

    states = Counter(f"{node.site} {node.state}" for node in view.nodes)
    nodes = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    waiting = sum(item.count for item in view.demand)
    return words.safe(
        f"{view.controller.state}: {nodes or 'no nodes'}; {waiting} waiting; "
        f"{words.rate(view.budget.now.usd_per_hour)}; "
        f"{words.count(view.jobs.running, 'job')} running; "
        f"{words.count(len(view.alarms), 'alarm')}"
    )
