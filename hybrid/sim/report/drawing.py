"""Matplotlib, taken in one place: drawings as SVG that follows the page's colours, or as PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.core.errors import ConfigError
from hybrid.sim.report.theme import LIGHT, esc

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Paint = Mapping[str, str]
"""Colours by the names of the theme."""

# Colours that nobody uses; in the SVG each becomes a variable of the page.
_STAND_INS = {name: f"#0102{place:02x}" for place, name in enumerate(LIGHT, start=16)}
_DPI = 72


@dataclass(frozen=True)
class Plot:
    """One plot.

    Attributes:
        name: Unique within a page.
        title, unit, note: In the reader's language; the unit says what both axes are.
        entries: What its colours mean: colour, words, and whether it fills an area.
        draw: Draws it.
        height: In inches, at a width of 9.
        note: Below it.
        is_bars: It has names at its left side, which need room.
    """

    name: str
    title: str
    unit: str
    entries: Sequence[tuple[str, str, bool]]
    draw: Callable[[Axes, Paint], None]
    height: float = 3.0
    note: str = ""
    is_bars: bool = False


def needed() -> None:
    """Say what is missing when Matplotlib is.

    Raises:
        ConfigError: It is.
    """
    try:
        import matplotlib as mpl  # noqa: F401 (only to say that it is missing)
    except ImportError as missing:
        raise ConfigError(
            f"reports need Matplotlib, and {missing.name} is not installed here; "
            "run `pip install 'hybrid-burst[sim]'`"
        ) from missing


def svg(plot: Plot) -> str:
    """Return a plot to be put into a page. Equal plots give equal text."""
    needed()
    import matplotlib as mpl

    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": plot.name}):
        _drawn([plot], _STAND_INS).savefig(
            out, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    text = out.getvalue()
    text = text[text.index("<svg") :]
    for name, colour in _STAND_INS.items():
        text = text.replace(colour, f"var(--{name})")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Ids are made anew for each drawing, so two on one page could clash.
    text = re.sub(r'(id="|#)([A-Za-z_][\w.-]*)', rf"\g<1>{plot.name}-\g<2>", text)
    text = re.sub(r"(\d+\.\d\d)\d+", r"\1", text)
    label = esc(f"{plot.title}; {plot.unit}")
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def png(title: str, plots: Sequence[Plot]) -> bytes:
    """Return plots below one another as one picture."""
    needed()
    out = io.BytesIO()
    _drawn(plots, LIGHT, title=title).savefig(out, format="png", dpi=2 * _DPI)
    return out.getvalue()


def can_say(text: str) -> bool:
    """Return whether the fonts here have all characters of a text."""
    needed()
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    path = font_manager.findfont(font_manager.FontProperties(family=_families()))
    return all(ord(char) in FT2Font(path).get_charmap() for char in text if char != "\n")


def _families() -> list[str]:
    from matplotlib import font_manager

    there = {font.name for font in font_manager.fontManager.ttflist}
    chinese = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Micro Hei")
    found = [name for name in (*chinese, "PingFang SC", "Microsoft YaHei") if name in there]
    return [*found[:1], "DejaVu Sans"]


def _drawn(plots: Sequence[Plot], paint: Paint, *, title: str = "") -> Figure:
    """Return a figure; with a title it is a picture of its own, without a part of a page."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    is_picture = bool(title)
    head = 1.1 if is_picture else 0.0  # inches above each plot, for words the page has itself
    heights = [plot.height + head for plot in plots]
    total = sum(heights) + (0.6 if is_picture else 0.0)
    families = _families() if is_picture else ["DejaVu Sans"]
    with mpl.rc_context({"font.size": 10, "font.family": families}):
        figure = Figure(figsize=(9, total))
        if is_picture:
            figure.patch.set_facecolor(paint["paper"])
            figure.text(0.02, 1 - 0.42 / total, title, fontsize=15, weight="bold")
        top = total - (0.6 if is_picture else 0.0)
        for plot in plots:
            bottom = top - plot.height - head
            left = 0.19 if plot.is_bars else 0.08
            box = (left, (bottom + 0.42) / total, 0.98 - left, (plot.height - 0.52) / total)
            axes = figure.add_axes(box)
            _dress(axes, paint)
            plot.draw(axes, paint)
            if is_picture:
                _say(figure, plot, paint, top / total, total)
            top = bottom
    return figure


def _say(figure: Figure, plot: Plot, paint: Paint, top: float, total: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure.text(0.02, top - 0.32 / total, plot.title, fontsize=11.5, weight="bold")
    figure.text(0.02, top - 0.55 / total, plot.unit, fontsize=9, color=paint["soft"])
    if plot.entries:
        handles = [
            Patch(color=paint[colour]) if is_area else Line2D([], [], color=paint[colour], lw=2.5)
            for colour, _, is_area in plot.entries
        ]
        figure.legend(
            handles,
            [words for _, words, _ in plot.entries],
            loc="upper left",
            bbox_to_anchor=(0.01, top - 0.6 / total),
            ncols=min(4, len(handles)),
            frameon=False,
            fontsize=8.5,
            handlelength=1.4,
            columnspacing=1.4,
        )


def _dress(axes: Axes, paint: Paint) -> None:
    axes.set_facecolor("none")
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(paint["line"])
    axes.tick_params(colors=paint["soft"], length=0, labelcolor=paint["ink"])
    axes.grid(visible=True, axis="y", color=paint["line"], linewidth=0.7)
    axes.set_axisbelow(True)
