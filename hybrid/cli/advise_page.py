"""The answer of `hybrid advise`, in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.sim.advise.advice import AdviceView
    from hybrid.sim.advise.words import Money


def advice_page(view: AdviceView, money: Money) -> list[Part]:
    """Return the lines."""
    from hybrid.sim.advise.hardware import ASSUMPTIONS
    from hybrid.sim.advise.words import LIMITS, NAMES, sentences
    from hybrid.sim.report import figures
    from hybrid.sim.report.lang import Words

    say = Words("en")
    sizes = [view.points[0], *view.simulated, view.points[-1]]
    if not view.best.is_simulated and view.best not in sizes:
        sizes.insert(1, view.best)
    rows = [
        (
            figures.count(point.own_gpus) + (" <-" if point == view.best else ""),
            "simulated" if point.is_simulated else "estimate",
            money(point.own_usd),
            money(point.rented_usd),
            money(point.total_usd),
            "?" if point.is_kept is None else "yes" if point.is_kept else "NO",
            figures.percent(point.home_busy_ratio),
        )
        for point in sizes
    ]
    columns = (
        "OWN GPUS",
        "HOW",
        Column("OWN A YEAR", is_number=True),
        Column("RENTED A YEAR", is_number=True),
        Column("IN ALL", is_number=True),
        "PROMISES KEPT",
        Column("HOME BUSY", is_number=True),
    )
    parts = ", ".join(
        f"{NAMES[name]} {money(usd)}" for name, usd in view.own_usd_per_gpu_year.items()
    )
    return [
        text(
            f"{view.source}: {view.jobs:,} jobs over {view.days:,.0f} days, "
            f"{view.mean_gpus:,.0f} GPUs on average and {view.peak_gpus:,} at most"
        ),
        text(""),
        *(text(sentence) for sentence in sentences(view, say, money)),
        text(""),
        table(columns, rows),
        text(""),
        text(f"A GPU of your own a year: {parts}."),
        text(""),
        table(
            ("ASSUMED", Column("VALUE", is_number=True), Column("SOURCE", is_long=True)),
            [
                (about.label, figures.number(getattr(view.own, name)), _source(view, name))
                for name, about in ASSUMPTIONS.items()
            ],
        ),
        text(""),
        *(text(f"- {limit}") for limit in LIMITS),
    ]


def _source(view: AdviceView, name: str) -> str:
    from hybrid.sim.advise.hardware import ASSUMPTIONS, OwnHardware

    default = getattr(OwnHardware(), name)
    return ASSUMPTIONS[name].source if getattr(view.own, name) == default else "given"
