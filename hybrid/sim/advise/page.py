"""Advice as a page or a picture, with the cost of each size of one's own cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.core.errors import ConfigError
from hybrid.sim.advise.advice import AdvicePoint, AdviceView
from hybrid.sim.advise.demand import DemandCurve
from hybrid.sim.advise.words import LIMITS, NAMES, Money, sentences
from hybrid.sim.report import figures
from hybrid.sim.report.drawing import Paint, Plot, can_say, needed, png
from hybrid.sim.report.files import save
from hybrid.sim.report.lang import Lang, Words
from hybrid.sim.report.page import own_table, plot_figure
from hybrid.sim.report.theme import document, esc, table, tiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_advice(
    view: AdviceView,
    curve: DemandCurve,
    *,
    html: Path | None = None,
    picture: Path | None = None,
    money: Money | None = None,
    command: str = "",
    lang: Lang = "en",
) -> None:
    """Write advice as a page that needs nothing else, as a picture, or as both.

    Raises:
        ConfigError: Matplotlib or a font is missing, or a file cannot be written.
    """
    needed()
    say, money = Words(lang), money or Money()
    if html is not None:
        body = _body(view, curve, say, money, command)
        save(html, document(_title(view, say), lang, body).encode())
    if picture is not None:
        plots = list(_plots(view, curve, say, money))
        words = [_title(view, say), *(part for plot in plots for part in (plot.title, plot.unit))]
        if not can_say("".join(words)):
            raise ConfigError(
                "no font of this machine has all characters of this picture; install one, such "
                "as Noto Sans CJK (Debian: fonts-noto-cjk), or ask for English (--lang en)"
            )
        save(picture, png(_title(view, say), plots))


def _title(view: AdviceView, say: Words) -> str:
    return say("What to own and what to rent: {source}", source=view.source)


def _body(
    view: AdviceView, curve: DemandCurve, say: Words, money: Money, command: str
) -> Iterator[str]:
    best = view.best
    yield f"<h1>{esc(_title(view, say))}</h1>"
    yield (
        '<p class="sub">'
        + esc(
            say(
                "{days} days with {jobs} jobs; {share} of them can be stopped and continued "
                "elsewhere. An estimate, not an offer.",
                days=f"{view.days:,.0f}",
                jobs=figures.count(view.jobs),
                share=figures.percent(view.checkpointable_ratio, 0),
            )
        )
        + "</p>"
    )
    joint = "" if say.lang == "zh" else " "
    yield f'<p class="lead">{esc(joint.join(sentences(view, say, money)))}</p>'
    yield tiles(
        (
            (figures.count(best.own_gpus), say("GPUs to own")),
            (money(best.total_usd), say("a year in all")),
            (figures.percent(view.break_even_ratio, 0), say("of the time: break-even of a GPU")),
            (f"{view.mean_gpus:,.0f} / {view.peak_gpus:,}", say("GPUs needed: mean / peak")),
        )
    )
    yield from map(plot_figure, _plots(view, curve, say, money))
    yield f"<h2>{esc(say('Sizes'))}</h2>"
    yield _sizes(view, say, money)
    yield f"<h2>{esc(say('What a GPU of your own costs a year'))}</h2>"
    parts = view.own_usd_per_gpu_year
    rows = [(say(NAMES[name]), money(usd)) for name, usd in parts.items()]
    yield table(
        (say("Part"), say("Cost")),
        [*rows, (say("in all"), money(sum(parts.values())))],
        marked=(say("in all"),),
    )
    yield f"<h2>{esc(say('Assumptions'))}</h2>"
    yield own_table(view.own, say)
    if money.currency != "USD":
        rate = say(
            "{rate} {currency} are one US dollar; prices above are in US dollars.",
            rate=f"{money.per_usd:g}",
            currency=money.currency,
        )
        yield f'<p class="note">{esc(rate)}</p>'
    yield "<ul>" + "".join(f"<li>{esc(say(text))}</li>" for text in LIMITS) + "</ul>"
    if command:
        yield f"<h3>{esc(say('Made by'))}</h3><pre>{esc(command)}</pre>"


def _sizes(view: AdviceView, say: Words, money: Money) -> str:
    few = [view.points[0], *view.simulated, view.points[-1]]
    rows = [
        (
            figures.count(point.own_gpus),
            say("simulated") if point.is_simulated else say("estimate"),
            money(point.own_usd),
            money(point.rented_usd),
            money(point.total_usd),
            figures.count(point.rented_gpu_h),
            _kept(point, say),
            figures.minutes(point.wait_p95_s),
            figures.percent(point.home_busy_ratio),
        )
        for point in few
    ]
    head = (
        say("Own GPUs"),
        say("How"),
        say("Own, a year"),
        say("Rented, a year"),
        say("In all"),
        say("Rented GPU-hours"),
        say("Promises kept"),
        say("95 of 100 jobs wait less, minutes"),
        say("Home has work"),
    )
    return table(head, rows, marked=(figures.count(view.best.own_gpus),))


def _kept(point: AdvicePoint, say: Words) -> str:
    if point.is_kept is None:
        return figures.UNKNOWN
    return say("yes") if point.is_kept else say("NO")


def _plots(view: AdviceView, curve: DemandCurve, say: Words, money: Money) -> Iterator[Plot]:
    entries = [
        ("c1", say("in all (line: estimate, dots: simulated)"), False),
        ("c2", say("rented"), False),
        ("c7", say("own"), False),
    ]
    yield Plot(
        "sizes",
        say("Cost a year, by how many GPUs you own"),
        say(
            "{currency} a year, by GPUs at home; the dotted line is the advice",
            currency=money.currency,
        ),
        entries,
        _costs(view, money),
        height=3.6,
    )
    yield Plot(
        "needed",
        say("How much of the time so many GPUs are needed"),
        say("percent of the time, by GPUs; above the dotted line it pays to own them"),
        [("c4", say("needed"), False)],
        _needed(view, curve),
    )


def _costs(view: AdviceView, money: Money) -> Callable[[Axes, Paint], None]:
    def draw(axes: Axes, paint: Paint) -> None:
        sizes = [point.own_gpus for point in view.points]
        rate = money.per_usd
        total = [rate * point.total_usd for point in view.points]
        own = [rate * point.own_usd for point in view.points]
        rented = [rate * point.rented_usd for point in view.points]
        axes.plot(sizes, own, color=paint["c7"], linewidth=1.6)
        axes.plot(sizes, rented, color=paint["c2"], linewidth=1.6)
        axes.plot(sizes, total, color=paint["c1"], linewidth=2.4)
        runs = view.simulated
        at = [p.own_gpus for p in runs]
        axes.plot(at, [rate * p.rented_usd for p in runs], "o", color=paint["c2"], markersize=5)
        axes.plot(at, [rate * p.total_usd for p in runs], "o", color=paint["c1"], markersize=7)
        axes.axvline(view.best.own_gpus, color=paint["ink"], linewidth=1.2, linestyle=":")
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)
        axes.yaxis.set_major_formatter(lambda value, _: money.on_axis(value))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")

    return draw


def _needed(view: AdviceView, curve: DemandCurve) -> Callable[[Axes, Paint], None]:
    def draw(axes: Axes, paint: Paint) -> None:
        sizes = [point.own_gpus for point in view.points if point.own_gpus]
        shares = [100 * curve.needed_ratio(gpus) for gpus in sizes]
        axes.fill_between(sizes, shares, color=paint["c4"], alpha=0.35, step="pre", linewidth=0)
        axes.step(sizes, shares, color=paint["c4"], linewidth=2, where="pre")
        if view.break_even_ratio <= 1:
            level = 100 * view.break_even_ratio
            axes.axhline(level, color=paint["ink"], linewidth=1.2, linestyle=":")
        axes.set_ylim(0, 105)
        axes.margins(x=0.01)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0f}%")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")

    return draw
