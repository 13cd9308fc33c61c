"""The plots of a report as one picture, for a slide or a chat."""

from __future__ import annotations

from hybrid.core.errors import ConfigError
from hybrid.sim.report.drawing import can_say, png
from hybrid.sim.report.facts import Report
from hybrid.sim.report.plots import plots_of


def picture(report: Report) -> bytes:
    """Return a PNG.

    Raises:
        ConfigError: Matplotlib is missing, or no font here has the characters.
    """
    plots = list(plots_of(report))
    words = [report.title, *(part for plot in plots for part in (plot.title, plot.unit))]
    if not can_say("".join(words)):
        raise ConfigError(
            "no font of this machine has all characters of this picture; install one, such as "
            "Noto Sans CJK (Debian: fonts-noto-cjk), or ask for English (--lang en, an ASCII title)"
        )
    return png(report.title, plots)
