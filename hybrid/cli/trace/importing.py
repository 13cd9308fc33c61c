"""`hybrid trace import`: a trace of another format into one of ours."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.options import Json, duration_option, seconds
from hybrid.cli.progress import Progress


class Kind(StrEnum):
    """The formats, as `hybrid.sim.traces.opening.KINDS` has them."""

    PHILLY = "philly"
    ALIBABA_POD = "alibaba-pod"
    AZURE_LLM = "azure-llm"
    SERVEGEN = "servegen"
    SPOT = "spot"
    CSV = "csv"
    SWF = "swf"


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("import")(import_)


def _is_above_zero(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"{value:g} is not above 0")
    return value


def import_(
    kind: Annotated[Kind, typer.Argument(help="What the source is; see docs/traces.md.")],
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="File or folder. Default: the public one, where HYBRID_TRACES has it.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where to write it; gzip if it ends in .gz. Without it, only read and check.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse lines that would else be counted.")
    ] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="OURS=THEIRS",
            help="For csv: which of their columns is one of ours; may be repeated.",
            show_default=False,
        ),
    ] = None,
    processors_per_gpu: Annotated[
        float,
        typer.Option(
            "--processors-per-gpu",
            metavar="N",
            help="For swf: how many processors stand for one GPU.",
            callback=_is_above_zero,
        ),
    ] = 1.0,
    window: Annotated[
        str, duration_option("--window", help="For azure-llm: length of a window.", default="1m")
    ] = "1m",
    json: Json = False,
) -> None:
    """Turn a public or foreign trace into one of ours, and say what was left out."""
    from hybrid import settings
    from hybrid.sim.traces import opening, sources
    from hybrid.sim.traces.summary import summary

    renamed = _renamed(column or [])
    if column and kind != Kind.CSV:
        raise StopError("--column goes with csv only; drop it", ExitCode.USAGE)
    path = source or sources.find(kind.value, settings.traces(settings.environment()))
    with Progress(f"Reading {words.safe(str(path))}") as progress:
        trace = opening.import_trace(
            kind.value,
            path,
            is_strict=strict,
            renamed=renamed,
            processors_per_gpu=processors_per_gpu,
            window_s=max(1e-3, seconds(window) or 60.0),
            on_part=lambda part: progress.show(f"{math.floor(part * 10) * 10} %"),
        )
        if out is not None:
            progress.show(f"writing {out}")
            opening.save(trace, out)
    view = summary(trace, str(out or ""))
    if json:
        output.write(view.model_dump_json().encode())
        return
    from hybrid.cli.trace.page import page

    output.show(*page(view))


def _renamed(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        ours, sign, theirs = (word.strip() for word in pair.partition("="))
        if not (ours and sign and theirs):
            raise StopError(
                f"--column {pair!r}: write OURS=THEIRS, such as gpus=num_gpus", ExitCode.USAGE
            )
        found[theirs] = ours
    return found
