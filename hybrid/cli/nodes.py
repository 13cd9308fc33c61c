"""`hybrid nodes`, and the table of nodes that `hybrid status` shows too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from hybrid.cli import output, words
from hybrid.cli.options import Cluster, Json, connect
from hybrid.cli.table import Column, table

if TYPE_CHECKING:
    from hybrid.cli.table import Grid
    from hybrid.core.views import NodeView

_COLUMNS = (
    "NAME",
    "SITE",
    "STATE",
    Column("GPUS", is_number=True),
    Column("CPUS", is_number=True),
    Column("IDLE", is_number=True),
    Column("SINCE", is_number=True),
    Column("PRICE", is_number=True),
    Column("WHY", is_long=True),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("nodes")(nodes)


def nodes(context: typer.Context, json: Json = False, _cluster: Cluster = "") -> None:
    """List nodes: yours, the rented, and those on their way."""
    client = connect(context)
    if json:
        output.write(client.read("nodes"))
        return
    view = client.nodes()
    output.show(node_table(view.nodes, view.at_s))


def node_table(found: Sequence[NodeView], now_s: float) -> Grid:
    """Return the table of nodes; `GPUS` and `CPUS` are used/total."""
    return table(_COLUMNS, (_row(node, now_s) for node in found))


def _row(node: NodeView, now_s: float) -> Sequence[str]:
    is_owned = node.site == "onprem"
    idle = words.duration(node.idle_s) if node.idle_s is not None else words.NONE
    return (
        node.name,
        node.site,
        node.state,
        words.used(node.gpus_used, node.gpus_total),
        words.used(node.cpus_used, node.cpus_total),
        idle,
        words.age(node.since_at_s, now_s),
        words.NONE if is_owned else words.rate(node.usd_per_hour),
        node.why,
    )
