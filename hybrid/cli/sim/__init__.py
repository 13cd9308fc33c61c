"""`hybrid sim`: what a policy would cost, on a trace. One module for each command."""

from __future__ import annotations

import typer

from hybrid.cli.sim import bench, bound, compare, replay, run, service


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Simulate policies on traces, without a cluster and without money.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for module in (run, compare, bench, bound, service, replay):
        module.register(group)
    app.add_typer(group, name="sim")
