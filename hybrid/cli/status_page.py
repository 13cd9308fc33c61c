"""The page of `hybrid status`: what runs, why, what it costs, and what needs a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.cli import words
from hybrid.cli.nodes import node_table
from hybrid.cli.plan import finding_table
from hybrid.cli.rests import rest_parts
from hybrid.cli.services_page import service_parts
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hybrid.cli.table import Part
    from hybrid.core.policy.plan import Finding
    from hybrid.core.views import BudgetView, DemandView, StatusView

_JOB_STATES = ("running", "submitted", "queued", "succeeded", "failed", "cancelled")


def status_page(view: StatusView) -> list[Part]:
    """Return the parts of the page, from top to bottom."""
    page: list[Part] = [
        text(headline(view), "bold"),
        text(view.summary or "Nothing yet."),
    ]
    page += [text(line, "yellow") for line in _switches(view)]
    page += [text(f"Money: {money_line(view.budget)}"), text(f"Jobs:  {_jobs_line(view)}")]
    page += [text(""), node_table(view.nodes, view.at_s)]
    page += service_parts(view.services, view.at_s)
    page += _waiting(view)
    page += rest_parts(view.plan.resting, view.plan.withheld, view.at_s)
    blind = [source for source in view.sources if not source.is_up]
    if blind or view.alarms:
        page.append(text(""))
    for source in blind:
        since = words.age(source.seen_at_s, view.at_s)
        line = f"Unknown: {source.name} cannot be seen (last seen {since} ago): {source.problem}"
        page.append(text(line, "yellow"))
    for alarm in view.alarms:
        line = f"! {alarm.what} (since {words.age(alarm.since_at_s, view.at_s)})"
        page.append(text(line, "bold red"))
    return page


def headline(view: StatusView) -> str:
    """Return which cluster it is and how its controller is."""
    controller = view.controller
    up = words.age(view.cluster.started_at_s, view.at_s)
    look = words.age(controller.last_tick_at_s, view.at_s)
    phase = f" ({controller.phase})" if controller.phase else ""
    return (
        f"Cluster {view.cluster.name}: {controller.state}{phase}, up {up}, looked {look} ago"
        f"  [hybrid {view.cluster.version}, Ray {view.cluster.ray_version}]"
    )


def money_line(budget: BudgetView) -> str:
    """Return what is rented and spent, each against its cap."""
    caps, now = budget.caps, budget.now
    rented = f"{words.count(now.node_count, 'node')}{_of(caps.node_count)}"
    gpus = f"{words.count(now.gpu_count, 'GPU')}{_of(caps.gpu_count)}"
    return (
        f"{words.rate(now.usd_per_hour)} now{_cap(caps.usd_per_hour, '/h')}, "
        f"today {words.money(now.day_usd)}{_cap(caps.usd_per_day)}, "
        f"this month {words.money(now.month_usd)}{_cap(caps.usd_per_month)}; "
        f"rented {rented}, {gpus}"
    )


def _cap(cap: float | None, per: str = "") -> str:
    return " (no cap)" if cap is None else f" of {words.money(cap)}{per}"


def _of(cap: int | None) -> str:
    return "" if cap is None else f" of {cap}"


def _switches(view: StatusView) -> list[str]:
    mode = view.mode
    by = f" by {mode.owner}" if mode.owner else ""
    lines = []
    if mode.is_closing:
        lines.append(f"Closing, asked{by}: everything rented is returned.")
    if mode.is_out_paused:
        lines.append(f"Launches are paused{by}; `hybrid resume out` goes on.")
    if mode.is_in_paused:
        lines.append(f"Scale-in is paused{by}; `hybrid resume in` goes on.")
    if mode.is_dry_run:
        lines.append(
            f"Dry run{by}: decisions are told and not carried out; `hybrid resume` ends it."
        )
    return lines


def _jobs_line(view: StatusView) -> str:
    counts = view.jobs.model_dump()
    found = [f"{counts[state]} {state}" for state in _JOB_STATES if counts.get(state)]
    return ", ".join(found) or "none"


def _waiting(view: StatusView) -> list[Part]:
    """Return waiting work: with reasons where the last plan gave some."""
    explained = {_key(item) for item in view.plan.findings}
    rest = [item for item in view.demand if _key(item) not in explained]
    if not view.plan.findings and not rest:
        return [text(""), text("No work waits.")]
    parts: list[Part] = []
    if view.plan.findings:
        parts += [text(""), finding_table(view.plan.findings)]
    if rest:
        parts += [text(""), _demand_table(rest)]
    return parts


def _demand_table(demand: Sequence[DemandView]) -> Part:
    columns = (
        Column("COUNT", is_number=True),
        "WAITS FOR",
        "MAY RUN",
        Column("WAITED", is_number=True),
    )
    rows = (
        (
            str(item.count),
            words.shape(item.shape) + (" together" if item.gang_id else ""),
            words.places(item.where, item.sites),
            words.duration(item.waiting_s),
        )
        for item in demand
    )
    return table(columns, rows)


def _key(item: DemandView | Finding) -> tuple[object, ...]:
    """Return what tells one kind of waiting work from another; a gang's bundles are one kind."""
    if item.gang_id:
        return (item.gang_id,)
    return (tuple(sorted(item.shape.items())), item.where)
