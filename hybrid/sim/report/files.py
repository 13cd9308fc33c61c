"""Writes a report into a file: one HTML page that needs nothing else, or one PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.core.errors import ConfigError

if TYPE_CHECKING:
    from hybrid.sim.advise.hardware import OwnHardware
    from hybrid.sim.bounds.report import BoundsView
    from hybrid.sim.params import SimParams
    from hybrid.sim.report.lang import Lang
    from hybrid.sim.results import SimResult


def write_report(
    results: Sequence[SimResult],
    path: Path,
    *,
    title: str,
    bounds: BoundsView | None = None,
    params: SimParams | None = None,
    own: OwnHardware | None = None,
    command: str = "",
    lang: Lang = "en",
) -> None:
    """Write results of one trace as one HTML page that loads nothing from anywhere.

    Args:
        results: One or several runs of one trace on equally many GPUs. The first whose policy is
            a profile of ours is the one the headline is about; else the first of all.
        path: Where to; its folder must exist.
        title: What the page is called.
        bounds: What somebody who knows the future would pay, for the table.
        params: What was simulated; without it the page says what it does not know.
        own: What a GPU at home costs; `None` takes the documented defaults, never 0.
        command: The command that made it, to be shown.
        lang: Language of the page.

    Raises:
        ConfigError: The extra `sim` is missing, the results do not belong together, or the file
            cannot be written.
    """
    from hybrid.sim.report.facts import Report
    from hybrid.sim.report.page import page

    report = Report.of(
        results, title=title, bounds=bounds, params=params, own=own, command=command, lang=lang
    )
    save(path, page(report).encode())


def write_png(results: Sequence[SimResult], path: Path, *, title: str, lang: Lang = "en") -> None:
    """Write the plots of the same results as one picture.

    Args:
        results: As for `write_report`.
        path: Where to.
        title: Above the plots.
        lang: Language of the labels; Chinese needs a font that has its characters.

    Raises:
        ConfigError: As for `write_report`.
    """
    from hybrid.sim.report.facts import Report
    from hybrid.sim.report.picture import picture

    save(path, picture(Report.of(results, title=title, lang=lang)))


def save(path: Path, content: bytes) -> None:
    """Write a file, or say why that was not possible.

    Raises:
        ConfigError: It was not.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        raise ConfigError(
            f"cannot write {path}: {error.strerror}; name a file in a folder that exists and "
            "that you may write to"
        ) from error
