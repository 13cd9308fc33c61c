"""A picture of how the time of a decision grows with the queue and the cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.bench_parts.figures import BenchError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME = re.compile(r"decide_jobs_([0-9]+)_p99_ms")
# Okabe and Ito's colours, as in the reports of the simulator.
_INK, _SOFT, _MEDIAN, _WORST = "#1b1f23", "#7d868e", "#0072b2", "#d55e00"


def points(document: Mapping[str, Any]) -> list[tuple[int, float, float]]:
    """Return (queued jobs, median ms, 99th percentile ms) of a saved document, by size.

    Raises:
        BenchError: It has fewer than two sizes.
    """
    found = []
    for figure in document.get("figures", []):
        match = _NAME.fullmatch(figure["name"])
        if match and figure["value"] is not None:
            found.append((int(match[1]), figure["details"]["cpu_median_ms"], figure["value"]))
    if len(found) < 2:
        raise BenchError("no growth to draw: measure with --only policy first")
    return sorted(found)


def draw(document: Mapping[str, Any], path: Path) -> None:
    """Write the picture; its form is that of the name's ending, such as .svg or .png.

    Raises:
        BenchError: There is nothing to draw.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure as Page

    made = points(document)
    mpl.rcParams["svg.hashsalt"] = "growth"  # the same picture for the same figures
    page = Page(figsize=(7.5, 4.2), layout="constrained")
    _draw(page.subplots(), made)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    page.savefig(path, metadata=metadata, dpi=120)


def _draw(axes: Axes, made: list[tuple[int, float, float]]) -> None:
    sizes = [size for size, _, _ in made]
    first_size, first_ms, _ = made[0]
    linear = [first_ms * size / first_size for size in sizes]
    axes.plot(sizes, linear, "--", color=_SOFT, label="linear, from the first")
    axes.plot(sizes, [p99 for *_, p99 in made], "s-", color=_WORST, label="99th percentile")
    axes.plot(sizes, [median for _, median, _ in made], "o-", color=_MEDIAN, label="median")
    axes.set(xscale="log", yscale="log", xlabel="queued jobs, and nodes as many")
    axes.set_ylabel("decide(), ms of processor time")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(visible=True, color="#d5dadf", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=_INK)
    axes.legend(frameon=False)
