"""`hybrid cost`: estimated spend, by provider and by reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.options import Cluster, Json, connect, duration_option, seconds
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.core.views import CostLine, CostView


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("cost")(cost)


def cost(
    context: typer.Context,
    since: Annotated[
        str, duration_option("--since", help="Of this last time only, for example 7d.")
    ] = "",
    json: Json = False,
    _cluster: Cluster = "",
) -> None:
    """Show estimated spend: an estimate from prices and times, not a bill."""
    client = connect(context)
    since_s = seconds(since)
    from_s = 0.0
    if since_s is not None:
        from hybrid.adapters.clock import SystemClock

        from_s = max(0.0, SystemClock().now_s() - since_s)
    if json:
        output.write(client.read("cost", since=from_s))
        return
    output.show(*_page(client.cost(from_s), since))


def _page(view: CostView, since: str) -> list[Part]:
    from hybrid.cli.status_page import money_line

    span = f"in the last {since}" if since else "in all"
    now = words.rate(view.running_usd_per_hour)
    page: list[Part] = [text(f"Spent {words.money(view.total_usd)} {span}; {now} now.")]
    page.append(text(f"Money: {money_line(view.budget)}"))
    for title, lines in (("PROVIDER", view.by_provider), ("REASON", view.by_reason)):
        if lines:
            page += [text(""), _table(title, lines)]
    page += [text(""), *(text(f"Note: {note}") for note in view.notes)] if view.notes else []
    return page


def _table(title: str, lines: Sequence[CostLine]) -> Part:
    columns = (
        title,
        Column("INSTANCES", is_number=True),
        Column("GPU HOURS", is_number=True),
        Column("COST", is_number=True),
        Column("USED", is_number=True),
    )
    rows = (
        (
            line.key,
            str(line.instance_count),
            f"{line.gpu_hours:.1f}",
            words.money(line.usd),
            words.money(line.busy_usd),
        )
        for line in lines
    )
    return table(columns, rows)
