"""`hybrid audit`: where a job and all that it started ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.options import Cluster, Json, connect
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.core.views import AuditView

_ATTEMPTS = (
    Column("ATTEMPT", is_number=True),
    Column("AGE", is_number=True),
    Column("NODES"),
    Column("SITE"),
    Column("WHY", is_long=True),
)
_TASKS = (
    Column("NODE"),
    Column("SITE"),
    Column("KIND"),
    Column("COUNT", is_number=True),
    Column("NAME", is_long=True),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit")(audit)


def audit(
    context: typer.Context,
    job: Annotated[str, typer.Argument(metavar="JOB", help="A job's id, from `hybrid jobs`.")],
    json: Json = False,
    _cluster: Cluster = "",
) -> None:
    """Show where a job and all that it started ran."""
    client = connect(context)
    if json:
        output.write(client.read(f"jobs/{job}/audit"))
        return
    output.show(*_page(client.job(job).audit()))


def _page(view: AuditView) -> list[Part]:
    parts: list[Part] = [text(_verdict(view))]
    if view.attempts:
        rows = [
            (
                str(attempt.attempt),
                words.age(attempt.at_s, view.at_s),
                ", ".join(attempt.nodes),
                ", ".join(dict.fromkeys(site or words.NONE for site in attempt.sites)),
                attempt.why,
            )
            for attempt in view.attempts
        ]
        parts += [text(""), table(_ATTEMPTS, rows)]
    if view.tasks:
        rows = [
            (task.node, task.site or words.NONE, task.kind, str(task.count), task.name)
            for task in view.tasks
        ]
        parts += [text(""), table(_TASKS, rows)]
    return [*parts, text(""), *(text(note) for note in view.notes)]


def _verdict(view: AuditView) -> str:
    """Say in one line whether all of it kept to the job's site."""
    sites = {site for attempt in view.attempts for site in attempt.sites}
    sites |= {task.site for task in view.tasks}
    known = ", ".join(sorted(sites - {""})) or "nowhere yet"
    line = f"{view.job_id} may run on {view.site}; it ran on: {known}."
    if view.site != "any" and sites - {view.site, ""}:
        outside = sum(task.count for task in view.tasks if task.site not in (view.site, ""))
        return f"{line} Not kept: {outside} tasks and actors ran elsewhere."
    return f"{line} Of some nodes the site is not known any more." if "" in sites else line
