"""Options that put results into a file: one HTML page, one picture."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.progress import Progress

if TYPE_CHECKING:
    from hybrid.sim.bounds.report import BoundsView
    from hybrid.sim.report.lang import Lang
    from hybrid.sim.runs import SimRunsView
    from hybrid.sim.traces.trace import Trace

_LANGS = ("en", "zh")


def _is_lang(value: str) -> str:
    if value not in _LANGS:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(_LANGS)}")
    return value


Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Also write a page with plots that needs no network; needs the extra sim.",
        show_default=False,
    ),
]
Png = Annotated[
    Path | None,
    typer.Option(
        "--png",
        metavar="FILE",
        help="Also write the plots as one picture; needs the extra sim.",
        show_default=False,
    ),
]
Language = Annotated[
    str,
    typer.Option(
        "--lang", metavar="en|zh", help="Language of the page and the picture.", callback=_is_lang
    ),
]
Bounds = Annotated[
    bool,
    typer.Option(
        "--bounds", help="With --html: also what somebody who knows the future would pay."
    ),
]


def check(html: Path | None, png: Path | None) -> None:
    """Refuse what could not be written, before anything takes time.

    Raises:
        ConfigError: Matplotlib is missing.
        StopError: A folder is not there.
    """
    for path in (html, png):
        if path is None:
            continue
        if path.is_dir() or not path.parent.is_dir():
            raise StopError(
                f"cannot write {path}: name a file in a folder that exists", ExitCode.USAGE
            )
        from hybrid.sim.report.drawing import needed

        needed()


def write(
    view: SimRunsView,
    jobs: Trace,
    *,
    html: Path | None,
    png: Path | None,
    lang: str,
    with_bounds: bool = False,
) -> None:
    """Write what was asked for, and say where it is.

    Raises:
        ConfigError: It cannot be written.
    """
    if html is None and png is None:
        return
    from hybrid.sim.report import write_png, write_report

    language: Lang = "zh" if lang == "zh" else "en"
    gpus = view.params.gpus
    title = f"{jobs.name}：自有 {gpus} 块 GPU" if lang == "zh" else f"{jobs.name}, {gpus} own GPUs"  # noqa: RUF001
    if html is not None:
        bounds = _bounds(view, jobs) if with_bounds else None
        write_report(
            view.results,
            html,
            title=title,
            bounds=bounds,
            params=view.params,
            command=command(),
            lang=language,
        )
        output.say(f"wrote {html}")
    if png is not None:
        write_png(view.results, png, title=title, lang=language)
        output.say(f"wrote {png}")


def command() -> str:
    """Return the command as it was given."""
    return shlex.join(["hybrid", *sys.argv[1:]])


def _bounds(view: SimRunsView, jobs: Trace) -> BoundsView:
    from hybrid.sim.bounds.report import bounds

    with Progress("Bounds") as progress:
        return bounds(
            jobs,
            view.params.gpus,
            max_wait_s=view.params.max_wait_s,
            late_share=view.params.late_share,
            usd_per_gpu_hour=view.params.usd_per_gpu_hour,
            on_phase=progress.show,
        )
