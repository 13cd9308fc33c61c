"""The page that says what is in a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybrid.cli import words
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.sim.traces.summary import (
        TraceJobsView,
        TraceRatesView,
        TraceSkippedView,
        TraceSpreadView,
        TraceView,
        TraceZoneView,
    )

_SPREAD: tuple[Column | str, ...] = (
    "",
    *(Column(name, is_number=True) for name in ("P50", "P90", "P99", "LARGEST")),
)


_DAY_S = 86_400


def page(view: TraceView) -> list[Part]:
    """Return the lines and tables of a trace."""
    where = f" in {view.file}" if view.file else ""
    parts: list[Part] = [
        text(f"{view.name}{where}: {words.duration(view.days * _DAY_S)} of {_what(view)}")
    ]
    if view.jobs:
        parts += _jobs(view.jobs)
    if view.rates:
        parts += _rates(view.rates)
    if view.zones:
        parts += [text(""), _zones(view.zones)]
    if view.skipped:
        parts += [text(""), text("Not taken over as it stands:")]
    for each in view.skipped:
        parts.append(text(skipped_line(each)))
    return parts


def skipped_line(each: TraceSkippedView) -> str:
    """Return what was not taken over as it stands."""
    kept = "kept" if each.is_kept else "left out"
    words = f"  {each.count:,} {kept}: {each.reason}"
    if not each.first_lines:
        return words
    more = ", ..." if each.count > len(each.first_lines) else ""
    return f"{words} (line {', '.join(map(str, each.first_lines))}{more})"


def _what(view: TraceView) -> str:
    return {"jobs": "jobs", "rates": "requests", "spot": "spot instances"}[view.kind]


def _jobs(view: TraceJobsView) -> Iterator[Part]:
    yield text(
        f"{words.count(view.jobs, 'job')} of {words.count(view.users, 'user')}, "
        f"{view.gpu_hours:,.0f} GPU-hours; "
        f"{view.checkpointable_ratio:.0%} of the work can be checkpointed"
    )
    yield text(
        f"Busy GPUs, if each job started at once: {view.mean_gpus:,.0f} on average, "
        f"{view.peak_gpus:,} at the most"
    )
    yield text(
        f"Longer than a day: {view.long_jobs_ratio:.1%} of the jobs, "
        f"{view.long_work_ratio:.0%} of the work"
    )
    yield text("")
    lengths = _numbers(view.duration_s)
    yield table(
        _SPREAD,
        [
            ("duration", *(words.duration(value) for value in lengths)),
            ("GPUs", *(f"{value:g}" for value in _numbers(view.gpus))),
        ],
    )


def _rates(view: TraceRatesView) -> Iterator[Part]:
    yield text(
        f"{words.count(view.windows, 'window')}, {view.mean_requests_per_s:,.1f} requests/s on "
        f"average; times between requests vary by {view.mean_interarrival_cv:.2f} (1 is Poisson)"
    )
    yield text("")
    values = _numbers(view.requests_per_s)
    yield table(_SPREAD, [("requests/s", *(f"{value:,.1f}" for value in values))])


def _zones(zones: tuple[TraceZoneView, ...]) -> Part:
    columns: tuple[Column | str, ...] = (
        "ZONE",
        Column("AVAILABLE", is_number=True),
        Column("CHANGES", is_number=True),
        Column("MOST", is_number=True),
    )
    rows = [
        (zone.zone, f"{zone.available_ratio:.0%}", f"{zone.changes:,}", str(zone.most))
        for zone in zones
    ]
    return table(columns, rows)


def _numbers(spread: TraceSpreadView) -> tuple[float, float, float, float]:
    return spread.p50, spread.p90, spread.p99, spread.largest
