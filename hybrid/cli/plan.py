"""`hybrid plan`: the last decision, with reasons, and why not more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import offline_plan, output, words
from hybrid.cli.options import Cluster, Json, connect, is_gpus
from hybrid.cli.rests import rest_parts
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Grid, Part
    from hybrid.core.policy.plan import Action, Finding
    from hybrid.core.views import PlanView


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan)


def plan(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="With --offline; found as by `hybrid up`.",
            show_default=False,
        ),
    ] = None,
    is_offline: Annotated[
        bool,
        typer.Option(
            "--offline", help="What would be decided for some work; asks no cluster and no cloud."
        ),
    ] = False,
    gpus: Annotated[
        str,
        typer.Option(
            "--gpus",
            metavar="TYPE:COUNT",
            help="With --offline: GPUs of one request, such as A100:8. Default: one of any type.",
            callback=is_gpus,
            show_default=False,
        ),
    ] = "",
    shape: Annotated[
        str,
        typer.Option(
            "--shape",
            metavar="RESOURCES",
            help="Instead of --gpus: Ray resources, such as GPU=8,CPU=16,memory=64GiB.",
            show_default=False,
        ),
    ] = "",
    count: Annotated[
        int | None,
        typer.Option(
            "--count",
            metavar="N",
            min=1,
            max=10_000,
            help="With --offline: so many requests wait. Default: 1.",
            show_default=False,
        ),
    ] = None,
    is_home_busy: Annotated[
        bool, typer.Option("--home-busy", help="With --offline: your own machines are full.")
    ] = False,
    json: Json = False,
    _cluster: Cluster = "",
) -> None:
    """Show the last decision: what is done, why, and why not more. Or plan without a cluster."""
    if is_offline:
        offline_plan.show(file, gpus, shape, count or 1, is_home_busy=is_home_busy, is_json=json)
        return
    if file or gpus or shape or count or is_home_busy:
        raise typer.BadParameter("FILE, --gpus, --shape, --count and --home-busy need --offline")
    client = connect(context)
    if json:
        output.write(client.read("plan"))
        return
    now_s = client.status().at_s
    output.show(*plan_page(client.plan(), now_s))


def plan_page(view: PlanView, now_s: float) -> list[Part]:
    """Return the page of one decision."""
    if view.at_s is None:
        return [text("No decision yet: the controller has not finished its first look.")]
    page: list[Part] = [text(f"{view.summary} (decided {words.age(view.at_s, now_s)} ago)")]
    if view.actions:
        page += [text(""), action_table(view.actions)]
    else:
        page.append(text("Nothing to do."))
    if view.findings:
        page += [text(""), finding_table(view.findings)]
    return [*page, *rest_parts(view.resting, view.withheld, now_s)]


def action_table(actions: Sequence[Action]) -> Grid:
    """Return what is done now, with reasons."""
    columns = ("ACTION", "WHAT", Column("PRICE", is_number=True), "REASON", _WHY)
    return table(columns, (_action_row(action) for action in actions))


def finding_table(findings: Sequence[Finding]) -> Grid:
    """Return waiting work and why it gets no more."""
    columns = (Column("COUNT", is_number=True), "WAITS FOR", "MAY RUN", _WAITED, "REASON", _WHY)
    return table(columns, (_finding_row(finding) for finding in findings))


_WHY = Column("WHY", is_long=True)
_WAITED = Column("WAITED", is_number=True)


def _action_row(action: Action) -> Sequence[str]:
    if action.kind == "launch":
        price = words.rate(action.offer.usd_per_hour)
        what = f"{action.offer.instance_type} ({action.offer.offer_id})"
    elif action.kind == "drain" or action.kind == "terminate":
        price, what = words.NONE, action.instance_id
    else:
        price, what = words.NONE, action.job_id
    return (action.kind, what, price, action.reason.code, action.reason.message)


def _finding_row(finding: Finding) -> Sequence[str]:
    never = " (never possible as configured)" if finding.is_for_ever else ""
    return (
        str(finding.count),
        words.shape(finding.shape) + (" together" if finding.gang_id else ""),
        words.places(finding.where) or words.UNKNOWN,
        words.duration(finding.waiting_s),
        finding.reason.code,
        finding.reason.message + never,
    )
