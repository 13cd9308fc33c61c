"""`hybrid sim run`: what one policy would cost on a trace."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid.cli import output
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
from hybrid.cli.sim.reporting import Html, Language, Png
from hybrid.cli.sim.simulating import chosen_jobs, simulated


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("run")(run)


def run(
    gpus: Gpus,
    trace: TraceName = "sample",
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="thrifty, balanced, fast; or ray, hpa, keda, slurm, reactive.",
        ),
    ] = "balanced",
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
    json: Json = False,
) -> None:
    """Run one policy on a trace: money, waits, promises, interruptions."""
    reporting.check(html, png)
    settings = settings_of(set_)
    policies = policies_of([policy], settings)
    site = site_of(gpus, settings, max_wait=max_wait, late_share=late_share, price=price, seed=seed)
    jobs = chosen_jobs(trace, days, users, checkpointable, site)
    view = simulated(jobs, site, policies)
    reporting.write(view, jobs, html=html, png=png, lang=lang)
    if json:
        output.write(view.model_dump_json().encode())
        return
    from hybrid.cli.sim.page import run_page

    output.show(*run_page(view.results[0], site))
