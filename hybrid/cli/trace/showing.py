"""`hybrid trace show`: what is in a trace."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.options import Json
from hybrid.cli.progress import Progress


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("show")(show)


def show(
    file: Annotated[
        str,
        typer.Argument(
            help="A file in our format, sample, or philly or alibaba-pod from HYBRID_TRACES."
        ),
    ] = "sample",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse lines that would else be counted.")
    ] = False,
    json: Json = False,
) -> None:
    """Show how much work a trace holds, how it is spread, and how much runs at a time."""
    from pathlib import Path

    from hybrid import settings
    from hybrid.sim.traces import opening
    from hybrid.sim.traces.summary import summary

    folder = settings.traces(settings.environment())
    with Progress(f"Reading {words.safe(file)}") as progress:

        def on_part(part: float) -> None:
            progress.show(f"{math.floor(part * 10) * 10} %")

        trace: opening.AnyTrace
        if file in opening.JOB_KINDS and not Path(file).exists():
            trace = opening.open_jobs(file, folder, on_part=on_part)
        else:
            trace = opening.open_any(file, is_strict=strict, on_part=on_part)
    view = summary(trace, file if Path(file).exists() else "")
    if json:
        output.write(view.model_dump_json().encode())
        return
    from hybrid.cli.trace.page import page

    output.show(*page(view))
