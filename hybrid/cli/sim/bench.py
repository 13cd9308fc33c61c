"""`hybrid sim bench`: the policy against baselines and bounds, on real traces, in one table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.options import Json
from hybrid.cli.sim.meter import Meter

if TYPE_CHECKING:
    from hybrid.sim.bench.cases import Case
    from hybrid.sim.bench.view import BenchRow


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("bench")(bench)


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="A small part: two cases, one seed, nothing tuned.")
    ] = False,
    cases: Annotated[
        str,
        typer.Option(
            "--cases", metavar="NAMES", help="Only these, with commas.", show_default=False
        ),
    ] = "",
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            metavar="N",
            min=1,
            max=100,
            help="How many, from 0. Default: 3, or 1 with --quick.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            help="Simulations at once. Default: one for each processor.",
            show_default=False,
        ),
    ] = None,
    no_profiles: Annotated[
        bool, typer.Option("--no-profiles", help="Only the baselines, for --baselines later.")
    ] = False,
    baselines: Annotated[
        Path | None,
        typer.Option(
            "--baselines",
            metavar="FILE",
            help="Take them from an earlier --json of the same seeds, instead of running them.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare the policy with tuned baselines and with bounds, on real traces.

    Real traces are read from HYBRID_TRACES; without it only the shipped one is run.
    """
    chosen = _chosen(cases, quick=quick)
    wanted = range(seeds or (1 if quick else 3))
    earlier = _earlier(baselines, wanted, is_tuned=not quick) if baselines else ()
    from hybrid import settings
    from hybrid.sim.bench.measure import Bench

    with Meter("Benchmark") as meter:
        view = Bench(
            cases=chosen,
            seeds=wanted,
            folder=settings.traces(settings.environment()),
            is_tuned=not quick,
            process_count=jobs or os.cpu_count() or 1,
            on_done=meter.show,
            earlier=earlier,
            has_profiles=not no_profiles,
        ).measure()
    if not view.rows:
        raise StopError("; ".join(view.missing), ExitCode.USAGE)
    if json:
        output.write(view.model_dump_json().encode())
        return
    from hybrid.cli.sim.page import bench_page

    output.show(*bench_page(view))


def _chosen(names: str, *, quick: bool) -> list[Case]:
    from hybrid.sim.bench.cases import CASES, QUICK

    wanted = [name.strip() for name in names.split(",") if name.strip()] or (
        list(QUICK) if quick else [case.name for case in CASES]
    )
    known = {case.name: case for case in CASES}
    if unknown := [name for name in wanted if name not in known]:
        raise StopError(
            f"--cases: no case {', '.join(unknown)}; there are {', '.join(known)}", ExitCode.USAGE
        )
    return [known[name] for name in dict.fromkeys(wanted)]


def _earlier(path: Path, seeds: range, *, is_tuned: bool) -> tuple[BenchRow, ...]:
    """Return the rows of the baselines in an earlier document.

    Raises:
        StopError: It cannot be read, or was made in another way.
    """
    from pydantic import ValidationError

    from hybrid.sim.bench.view import BenchView

    try:
        view = BenchView.model_validate_json(path.read_bytes())
    except OSError as error:
        raise StopError(f"cannot read {path}: {error.strerror}", ExitCode.USAGE) from error
    except ValidationError as error:
        raise StopError(
            f"{path} is no document of `hybrid sim bench --json`", ExitCode.USAGE
        ) from error
    if view.seeds != tuple(seeds) or view.is_tuned != is_tuned:
        raise StopError(
            f"{path} has seeds {', '.join(map(str, view.seeds))} and baselines that were "
            f"{'' if view.is_tuned else 'not '}tuned; run it with the same --seeds and --quick",
            ExitCode.USAGE,
        )
    return tuple(row for row in view.rows if not row.is_profile)
