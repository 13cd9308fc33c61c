"""Which trace is meant, and which part of it: options that the commands of `sim` share."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import words
from hybrid.cli.progress import Progress

if TYPE_CHECKING:
    from hybrid.sim.traces.trace import Trace

_DAYS = re.compile(r"([0-9]+(?:\.[0-9]+)?)-([0-9]+(?:\.[0-9]+)?)")

A100_USD_PER_HOUR = 3.673385
"""One A100 40 GB of Google Cloud, us-central1, on demand, on 2026-08-03."""


def _is_days(value: str) -> str:
    if value:
        parts = _DAYS.fullmatch(value)
        if parts is None or float(parts[1]) >= float(parts[2]):
            raise typer.BadParameter(f"{value!r} is not FROM-TO, such as 24-84")
    return value


def is_not_below_zero(value: float) -> float:
    """Refuse what is no number from 0 up, where the name of the option is known."""
    if not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter(f"{value:g} is not 0 or more")
    return value


TraceName = Annotated[
    str,
    typer.Option(
        "--trace",
        metavar="TRACE",
        help="A file in our format, sample, or philly or alibaba-pod from HYBRID_TRACES.",
    ),
]
Days = Annotated[
    str,
    typer.Option(
        "--days",
        metavar="FROM-TO",
        help="Only jobs of these days, such as 24-84.",
        callback=_is_days,
        show_default=False,
    ),
]
Users = Annotated[
    str,
    typer.Option(
        "--users",
        metavar="NAMES",
        help="Only jobs of these users or virtual clusters, separated by commas.",
        show_default=False,
    ),
]
Gpus = Annotated[int, typer.Option("--gpus", metavar="N", min=0, help="GPUs at home.")]
Price = Annotated[
    float,
    typer.Option(
        "--price",
        metavar="USD",
        help="A rented GPU for an hour. The default is an A100 of Google Cloud.",
        callback=is_not_below_zero,
    ),
]


def chosen_trace(trace: str, days: str, users: str) -> Trace:
    """Return the jobs that are meant.

    Raises:
        TraceError: There are none, or the file cannot be used.
    """
    from hybrid import settings
    from hybrid.sim.traces import opening
    from hybrid.sim.traces.reading import TraceError

    with Progress(f"Reading {words.safe(trace)}") as progress:
        found = opening.open_jobs(
            trace,
            settings.traces(settings.environment()),
            on_part=lambda part: progress.show(f"{math.floor(part * 10) * 10} %"),
        )
    if parts := _DAYS.fullmatch(days):
        found = found.window(float(parts[1]), float(parts[2]))
    if users:
        names = {name.strip() for name in users.split(",")}
        unknown = sorted(names - {job.user for job in found.jobs})
        if unknown:
            raise TraceError(f"{found.name} has no job of {', '.join(unknown)}; see --users")
        found = found.only(lambda job: job.user in names, f"{found.name}, {users}")
    if not found.jobs:
        raise TraceError(f"{found.name} has no job; it is {found.end_s / 86_400:.0f} days long")
    return found
