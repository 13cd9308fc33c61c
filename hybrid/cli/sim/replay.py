"""`hybrid sim replay`: recorded decisions, made again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.exits import ExitCode
from hybrid.cli.options import Json
from hybrid.cli.progress import Progress
from hybrid.cli.sim.naming import settings_of
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.sim.recorded.replay import ReplayView

_NOTHING = "nothing"
_COLUMNS = (
    "FROM",
    "TO",
    Column("DECISIONS", is_number=True),
    "RECORDED",
    "NOW",
    Column("WHY NOW", is_long=True),
)


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("replay")(replay)


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            help="A controller's record: the folder decisions of its state folder, or a file of it."
        ),
    ],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="What if: max_wait=10m, jobs.rent_after=1m, caps.gpu_count=16; repeatable.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make recorded decisions again: the same ones, or with other parameters.

    Ends with 1 when nothing was changed and a decision comes out otherwise.
    """
    from hybrid.sim.recorded.reading import RecordFiles
    from hybrid.sim.recorded.replay import replay as replayed

    changes = settings_of(set_)
    with Progress(f"Deciding again: {words.safe(str(file))}") as progress:
        view = replayed(
            RecordFiles.at(file),
            str(file),
            changes,
            on_part=lambda part: progress.show(f"{math.floor(part * 100)} %"),
        )
    if json:
        output.write(view.model_dump_json().encode())
    else:
        output.show(*_page(view))
    if not changes and not view.is_same:
        raise typer.Exit(ExitCode.FAILED)


def _page(view: ReplayView) -> Iterator[Part]:
    yield text(_head(view))
    if view.differences:
        yield text("")
        yield table(
            _COLUMNS,
            [
                (
                    _moment(row.from_at_s),
                    _moment(row.to_at_s),
                    str(row.decisions),
                    "; ".join(row.recorded) or _NOTHING,
                    "; ".join(row.now) or _NOTHING,
                    "; ".join(row.reasons),
                )
                for row in view.differences
            ],
        )
        if view.more:
            yield text(f"And {view.more:,} more.")
    if view.changes and view.differences:
        yield text("")
        yield text(
            "Each decision saw what really was, so what another one would have led to is not in "
            "the next: look at the first of a row. For whole nights: hybrid trace record, sim run"
        )
    if view.skipped:
        from hybrid.cli.trace.page import skipped_line

        yield text("")
        yield text("Not read as it stands:")
        for each in view.skipped:
            yield text(skipped_line(each))


def _head(view: ReplayView) -> str:
    if view.from_at_s is None or view.to_at_s is None:
        return f"{view.source} has no decision."
    span = f"from {_moment(view.from_at_s)} to {_moment(view.to_at_s)}"
    by = ", ".join(view.hybrid)
    what = f"{words.count(view.decisions, 'decision')} of hybrid {by} {span}"
    other = view.decisions - view.same
    if not other:
        return f"{what}: all come out the same."
    return f"{what}: {other:,} come out otherwise."


def _moment(at_s: float) -> str:
    import datetime as dt

    return dt.datetime.fromtimestamp(at_s, dt.UTC).strftime("%Y-%m-%d %H:%M:%SZ")
