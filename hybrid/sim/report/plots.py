"""The plots of a report, each from the runs to what a drawing needs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hybrid.sim.report import figures
from hybrid.sim.report.drawing import Paint, Plot
from hybrid.sim.report.facts import TARGET_RATIO, Report
from hybrid.sim.results import Point, SimResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DAY_S = 86_400.0
_MOST_POINTS = 300
_MOST_LINES = 6
_COLOURS = ("c2", "c4", "c5", "c3", "c6", "c7")
_Dash: TypeAlias = str | tuple[int, tuple[int, ...]]
_DASHES: tuple[_Dash, ...] = ("--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 3)))


def plots_of(report: Report) -> Iterator[Plot]:
    """Yield the plots that the runs have the facts for."""
    lines = _lines(report)
    if len(report.run.series) > 1:
        yield _over_time(report, "cost", lines, is_usd=True)
        yield from _gpus(report)
        # The queue jumps up and down: more lines than two hide one another.
        pair = [line for line in lines if line.name in (report.ours, report.base)]
        yield _over_time(report, "queue", pair, is_usd=False)
    yield _waits(report)
    yield _promises(report)
    yield _rent(report)
    if any(len(run.usd_by_reason) > 1 for run in report.runs.values()):
        yield _reasons(report)


@dataclass(frozen=True)
class _Line:
    name: str
    run: SimResult
    colour: str
    dash: _Dash

    @property
    def width(self) -> float:
        return 2.4 if self.dash == "-" else 1.6


def _lines(report: Report) -> list[_Line]:
    """Return the runs that get a line: ours, its opponent, then the cheapest others."""
    first = [name for name in (report.ours, report.base) if name is not None]
    names = [*first, *(name for name in report.runs if name not in first)][:_MOST_LINES]
    styles = zip(("c1", *_COLOURS), ("-", *_DASHES), strict=True)
    return [
        _Line(name, report.runs[name], colour, dash)
        for name, (colour, dash) in zip(names, styles, strict=False)
    ]


def _over_time(report: Report, name: str, lines: list[_Line], *, is_usd: bool) -> Plot:
    say = report.words

    def draw(axes: Axes, paint: Paint) -> None:
        for line in lines:
            value = _money_so_far if is_usd else _queued
            days, values = _thinned(line.run.series, value, is_sum=is_usd)
            colour = paint[line.colour]
            axes.plot(days, values, color=colour, linestyle=line.dash, linewidth=line.width)
        _from_zero(axes, _money if is_usd else figures.count)

    left = len(report.runs) - len(lines)
    return Plot(
        name,
        say("Money for rented GPUs, added up") if is_usd else say("Work that waits, in GPUs"),
        say("US dollars, by days since the start")
        if is_usd
        else say("GPUs that waiting jobs ask for, by days since the start"),
        [(line.colour, line.name, False) for line in lines],
        draw,
        note=say("{count} more runs are in the tables only.", count=left)
        if is_usd and left > 0
        else "",
    )


def _gpus(report: Report) -> Iterator[Plot]:
    """Yield the GPUs in use of our run and of its opponent, to the same scale."""
    say = report.words
    names = [name for name in (report.ours, report.base) if name is not None]
    names = [name for name in names if len(report.runs[name].series) > 1]
    most = max(
        max(point.home_busy + point.rented for point in report.runs[name].series) for name in names
    )
    for place, name in enumerate(names):
        run = report.runs[name]
        yield Plot(
            f"gpus{place}",
            say("GPUs in use: {policy}", policy=name),
            say("GPUs, by days since the start"),
            [
                ("c1", say("at home, with work"), True),
                ("c2", say("rented, with work"), True),
                ("c3", say("rented, without work"), True),
                ("ink", say("owned: {gpus} GPUs", gpus=run.gpus), False),
            ],
            _stack(run, max(most, float(run.gpus))),
        )


def _stack(run: SimResult, most: float) -> Callable[[Axes, Paint], None]:
    def draw(axes: Axes, paint: Paint) -> None:
        days, home = _thinned(run.series, lambda point: point.home_busy)
        busy = _thinned(run.series, lambda point: point.rented_busy)[1]
        idle = _thinned(run.series, lambda point: max(0.0, point.rented - point.rented_busy))[1]
        colours = [paint["c1"], paint["c2"], paint["c3"]]
        axes.stackplot(days, home, busy, idle, colors=colours, step="post", linewidth=0)
        axes.axhline(run.gpus, color=paint["ink"], linewidth=1.2)
        _from_zero(axes, figures.count)
        axes.set_ylim(0, most * 1.06 or 1)

    return draw


def _waits(report: Report) -> Plot:
    say = report.words
    rows = [
        (name, [each / 60 for each in (run.wait_s.p50, run.wait_s.p95, run.wait_s.p99)])
        for name, run in report.runs.items()
    ]
    return Plot(
        "waits",
        say("How long jobs wait before they start"),
        say("minutes"),
        [
            ("c6", say("half of the jobs wait less"), True),
            ("c1", say("95 of 100 wait less"), True),
            ("c7", say("99 of 100 wait less"), True),
        ],
        _bars(rows, ("c6", "c1", "c7"), lambda value: figures.minutes(value * 60)),
        height=_height(len(rows), 3),
        is_bars=True,
    )


def _promises(report: Report) -> Plot:
    say = report.words
    rows = [
        (
            name,
            [
                100 * (1 - run.promises.start_by_jobs),
                100 * (1 - run.promises.delay_by_gpu_time),
            ],
        )
        for name, run in report.runs.items()
    ]
    return Plot(
        "promises",
        say("Promises broken"),
        say("percent; the line is what may be broken, {share}", share=f"{1 - TARGET_RATIO:.1%}"),
        [
            ("c2", say("jobs that started too late"), True),
            ("c3", say("work, by GPU-time, that ended too late"), True),
        ],
        _bars(rows, ("c2", "c3"), lambda v: figures.percent(v / 100, 2), 100 * (1 - TARGET_RATIO)),
        height=_height(len(rows), 2),
        is_bars=True,
    )


def _rent(report: Report) -> Plot:
    say = report.words
    rows = []
    for name, run in report.runs.items():
        rate = run.usd / run.rented_gpu_h if run.rented_gpu_h else 0.0
        useful_h = max(0.0, run.rented_gpu_h - run.idle_gpu_h - run.lock_in_gpu_h)
        rows.append((name, [rate * h for h in (useful_h, run.lock_in_gpu_h, run.idle_gpu_h)]))
    return Plot(
        "rent",
        say("What the rent was for"),
        say("US dollars"),
        [
            ("c4", say("work, while home was full"), True),
            ("c2", say("work, while GPUs at home were free (lock-in)"), True),
            ("c3", say("no work: booting, idle, being returned"), True),
        ],
        _stacked(rows, ("c4", "c2", "c3")),
        height=_height(len(rows), 1),
        is_bars=True,
    )


def _reasons(report: Report) -> Plot:
    say = report.words
    codes = sorted({code for run in report.runs.values() for code in run.usd_by_reason})
    colours = ("c1", *_COLOURS)[: len(codes)]
    rows = [
        (name, [run.usd_by_reason.get(code, 0.0) for code in codes])
        for name, run in report.runs.items()
    ]
    return Plot(
        "reasons",
        say("Why nodes were rented"),
        say("US dollars, by the code of the reason; docs/reasons.md explains each"),
        [(colour, code, True) for colour, code in zip(colours, codes, strict=False)],
        _stacked(rows, colours),
        height=_height(len(rows), 1),
        is_bars=True,
    )


def _bars(
    rows: Sequence[tuple[str, list[float]]],
    colours: Sequence[str],
    shown: Callable[[float], str],
    target: float | None = None,
) -> Callable[[Axes, Paint], None]:
    def draw(axes: Axes, paint: Paint) -> None:
        thick = 0.8 / len(colours)
        for row, (_, values) in enumerate(rows):
            for place, (value, colour) in enumerate(zip(values, colours, strict=True)):
                at = row - 0.4 + thick * (place + 0.5)
                axes.barh(at, value, thick * 0.9, color=paint[colour])
                _tag(axes, value, at, shown(value), paint)
        if target is not None:
            axes.axvline(target, color=paint["ink"], linewidth=1.2, linestyle=":")
        _as_bars(axes, [name for name, _ in rows], [max(values) for _, values in rows], paint)

    return draw


def _stacked(
    rows: Sequence[tuple[str, list[float]]], colours: Sequence[str]
) -> Callable[[Axes, Paint], None]:
    def draw(axes: Axes, paint: Paint) -> None:
        for row, (_, values) in enumerate(rows):
            left = 0.0
            for value, colour in zip(values, colours, strict=False):
                axes.barh(row, value, 0.62, left=left, color=paint[colour])
                left += value
            _tag(axes, left, row, figures.short_usd(left), paint)
        _as_bars(axes, [name for name, _ in rows], [sum(values) for _, values in rows], paint)
        axes.xaxis.set_major_formatter(lambda value, _: _money(value))

    return draw


def _tag(axes: Axes, value: float, at: float, words: str, paint: Paint) -> None:
    axes.annotate(
        words,
        (value, at),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=paint["ink"],
        annotation_clip=False,
    )


def _as_bars(axes: Axes, names: list[str], values: list[float], paint: Paint) -> None:
    axes.set_yticks(range(len(names)), [_label(name) for name in names])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", color=paint["line"], linewidth=0.7)
    axes.set_xlim(0, (max(values) * 1.12) or 1)


def _from_zero(axes: Axes, shown: Callable[[float], str]) -> None:
    axes.set_ylim(bottom=0)
    if axes.get_ylim()[1] <= 0:
        axes.set_ylim(0, 1)
    axes.margins(x=0)
    axes.yaxis.set_major_formatter(lambda value, _: shown(value))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _money(value: float) -> str:
    return figures.short_usd(value)


def _label(name: str) -> str:
    """Return a name that fits beside a bar, over several lines where it is long."""
    return "\n".join(textwrap.wrap(name, 22, max_lines=3, placeholder="..."))


def _height(rows: int, bars: int) -> float:
    return 0.75 + rows * max(0.42, 0.2 * bars)


def _money_so_far(point: Point) -> float:
    return point.usd


def _queued(point: Point) -> float:
    return point.queued


def _thinned(
    series: Sequence[Point], value: Callable[[Point], float], *, is_sum: bool = False
) -> tuple[list[float], list[float]]:
    """Return days and values over equal numbers of points, so that a plot stays small.

    Args:
        series: The course of a run.
        value: What to show of a point.
        is_sum: It only grows, so the last of some points counts, not their mean.
    """
    step = max(1, -(-len(series) // _MOST_POINTS))
    days, values = [], []
    for first in range(0, len(series), step):
        part = series[first : first + step]
        shown = part[-1] if is_sum else part[0]
        days.append(shown.at_s / _DAY_S)
        values.append(value(shown) if is_sum else sum(map(value, part)) / len(part))
    return days, values
