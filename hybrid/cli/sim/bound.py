"""`hybrid sim bound`: what even somebody who knows the future must pay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.options import Json, duration_option, seconds
from hybrid.cli.progress import Progress
from hybrid.cli.sim.choosing import (
    A100_USD_PER_HOUR,
    Days,
    Gpus,
    Price,
    TraceName,
    Users,
    chosen_trace,
    is_not_below_zero,
)
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.sim.bounds.report import BoundsView


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("bound")(bound)


def bound(
    gpus: Gpus,
    trace: TraceName = "sample",
    days: Days = "",
    users: Users = "",
    max_wait: Annotated[
        str, duration_option("--max-wait", help="How late a job may be.", default="30m")
    ] = "30m",
    late_share: Annotated[
        float,
        typer.Option(
            "--late-share",
            metavar="SHARE",
            help="How much later it may be, in shares of its run time.",
            callback=is_not_below_zero,
        ),
    ] = 0.02,
    price: Price = A100_USD_PER_HOUR,
    json: Json = False,
) -> None:
    """Show the least that must be rented, and a plan that shows how near that is."""
    jobs = chosen_trace(trace, days, users)
    from hybrid.sim.bounds.report import bounds

    with Progress(f"Bounds of {words.safe(jobs.name)}") as progress:
        view = bounds(
            jobs,
            gpus,
            max_wait_s=seconds(max_wait) or 0.0,
            late_share=late_share,
            usd_per_gpu_hour=price,
            on_phase=progress.show,
        )
    if json:
        output.write(view.model_dump_json().encode())
        return
    output.show(*_page(view))


def _page(view: BoundsView) -> list[Part]:
    columns = (
        "BOUND",
        Column("GPU HOURS", is_number=True),
        Column("COST", is_number=True),
        Column("OF ALL WORK", is_number=True),
        Column("HOLDS FOR", is_long=True),
    )
    rows = [
        (
            f"{each.name} ({'at least' if each.is_lower else 'at most'})",
            f"{each.gpu_hours:,.0f}",
            words.money(each.usd),
            f"{each.work_ratio:.1%}",
            each.holds_for,
        )
        for each in view.bounds
    ]
    head = (
        f"{view.trace}: {words.count(view.jobs, 'job')}, {view.gpu_hours:,.0f} GPU-hours, "
        f"{view.gpus} GPUs at home, {words.rate(view.usd_per_gpu_hour)} for a rented one"
    )
    return [
        text(head),
        text(""),
        table(columns, rows),
        text(""),
        text("A bound says nothing of policies that it does not hold for: they may pay less."),
    ]
