"""`hybrid trace`: traces from other formats, and what is in them. One module for each command."""

from __future__ import annotations

import typer

from hybrid.cli.trace import importing, recording, showing


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Import traces of work, record one of your own, and see what is in them.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for module in (importing, showing, recording):
        module.register(group)
    app.add_typer(group, name="trace")
