"""`hybrid sim compare`: several policies on the same jobs, side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid.cli import output
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.options import Json
from hybrid.cli.sim import reporting
from hybrid.cli.sim.choosing import A100_USD_PER_HOUR, Days, Gpus, Price, TraceName, Users
from hybrid.cli.sim.naming import (
    Checkpointable,
    LateShare,
    MaxWait,
    Seed,
    Set,
    policies_of,
    settings_of,
    site_of,
)
from hybrid.cli.sim.reporting import Bounds, Html, Language, Png
from hybrid.cli.sim.simulating import chosen_jobs, simulated


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("compare")(compare)


def compare(
    gpus: Gpus,
    trace: TraceName = "sample",
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            metavar="NAMES",
            help="Of thrifty, balanced, fast, ray, hpa, keda, slurm, reactive; with commas.",
        ),
    ] = "thrifty,balanced,fast,ray",
    days: Days = "",
    users: Users = "",
    checkpointable: Checkpointable = None,
    max_wait: MaxWait = "30m",
    late_share: LateShare = 0.02,
    price: Price = A100_USD_PER_HOUR,
    seed: Seed = 0,
    set_: Set = None,
    html: Html = None,
    png: Png = None,
    lang: Language = "en",
    bounds: Bounds = False,
    json: Json = False,
) -> None:
    """Run several policies on the same jobs; baselines as they are, not tuned."""
    names = [name.strip() for name in policies.split(",") if name.strip()]
    if not names:
        raise StopError("--policies names none; give some, such as balanced,ray", ExitCode.USAGE)
    reporting.check(html, png)
    settings = settings_of(set_)
    chosen = policies_of(names, settings)
    site = site_of(gpus, settings, max_wait=max_wait, late_share=late_share, price=price, seed=seed)
    jobs = chosen_jobs(trace, days, users, checkpointable, site)
    view = simulated(jobs, site, chosen)
    reporting.write(view, jobs, html=html, png=png, lang=lang, with_bounds=bounds)
    if json:
        output.write(view.model_dump_json().encode())
        return
    from hybrid.cli.sim.page import compare_page

    output.show(*compare_page(view.results, site))
