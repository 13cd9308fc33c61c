"""`hybrid jobs`, `logs` and `cancel`."""

from __future__ import annotations

import json as json_text
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.options import Cluster, Json, connect
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Grid
    from hybrid.core.models import Job

JobId = Annotated[str, typer.Argument(metavar="JOB", help="A job's id, from `hybrid jobs`.")]

_COLUMNS = (
    Column("ID"),
    Column("NAME"),
    Column("STATE"),
    Column("AGE", is_number=True),
    Column("RAN", is_number=True),
    Column("GPUS", is_number=True),
    Column("PRIORITY", is_number=True),
    Column("CLASS"),
    Column("SITE"),
    Column("USER"),
    Column("COMMAND", is_long=True),
    Column("MESSAGE", is_long=True),
)
_COMMAND_CHARS = 60
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_USUAL = {
    "NAME": words.NONE,
    "GPUS": words.NONE,
    "PRIORITY": "50",
    "CLASS": "batch",
    "SITE": "any",
    "USER": words.NONE,
    "MESSAGE": "",
}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("jobs")(jobs)
    app.command("logs")(logs)
    app.command("cancel")(cancel)


def jobs(
    context: typer.Context,
    json: Json = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 50,
    _cluster: Cluster = "",
) -> None:
    """List jobs, newest first."""
    client = connect(context)
    if json:
        output.write(client.read("jobs", limit=limit))
        return
    view = client.jobs(limit=limit)
    if not view.jobs:
        output.show(text("No jobs yet. Start one: hybrid submit -- python train.py"))
        return
    output.show(_job_table(view.jobs, view.at_s))


def logs(
    context: typer.Context,
    job: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the job ends.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help='Print lines of JSON: {"job_id": ..., "text": ...}.')
    ] = False,
    _cluster: Cluster = "",
) -> None:
    """Print a job's output."""
    found = connect(context).job(job)
    pieces: Iterable[str] = found.logs(follow=True) if follow else [found.logs()]
    for piece in pieces:
        print_piece(piece, job if json else "")


def cancel(context: typer.Context, job: JobId, json: Json = False, _cluster: Cluster = "") -> None:
    """End a job."""
    client = connect(context)
    state = client.job(job).cancel()
    if json:
        output.write(client.read(f"jobs/{job}"))
        return
    output.lines([f"{job}: {state.value}" if state.is_ended else f"{job}: is being ended"])


def print_piece(piece: str, json_of: str = "") -> None:
    """Print a piece of a job's output as it is; in a pipe without its colours.

    Args:
        piece: Some of the output.
        json_of: The job's id, for a line of JSON instead; `""` for the output itself.
    """
    if json_of:
        output.lines([json_text.dumps({"job_id": json_of, "text": piece}, ensure_ascii=False)])
        return
    if not sys.stdout.isatty():
        piece = _COLOUR.sub("", piece)  # Ray colours lines whether or not anybody can see it
    sys.stdout.buffer.write(piece.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _job_table(found: Sequence[Job], now_s: float) -> Grid:
    """Return the table of jobs, without columns that have the usual value in every row."""
    rows = [_row(job, now_s) for job in found]
    shown = [
        index
        for index, column in enumerate(_COLUMNS)
        if _USUAL.get(column.name) is None or any(row[index] != _USUAL[column.name] for row in rows)
    ]
    return table(
        [_COLUMNS[index] for index in shown], ([row[index] for index in shown] for row in rows)
    )


def _gpus(job: Job) -> str:
    if not job.spec.gpus:
        return words.NONE
    each = words.number(job.spec.gpus)
    return f"{job.spec.nodes} x {each}" if job.spec.nodes else each


def _state(job: Job) -> str:
    """Return where a job is; what leaves its place and what has left it says so."""
    if job.stop is not None:
        return "stopping" if job.stop.is_saved else "saving"
    if job.state.value == "queued" and job.started_at_s is not None:
        return "suspended"
    return job.state.value


def _row(job: Job, now_s: float) -> Sequence[str]:
    if job.started_at_s is None:
        ran = words.NONE
    else:
        ran = words.duration((job.ended_at_s or now_s) - job.started_at_s)
    return (
        job.job_id,
        job.spec.name or words.NONE,
        _state(job),
        words.age(job.created_at_s, now_s),
        ran,
        _gpus(job),
        str(job.spec.priority),
        job.spec.job_class.value,
        job.spec.site,
        job.spec.user or words.NONE,
        words.short(job.spec.entrypoint, _COMMAND_CHARS),
        job.message,
    )
