"""`hybrid doctor`: is this machine fit, and is the cluster well? Each finding has a remedy."""

from __future__ import annotations

import json as json_text
from dataclasses import asdict
from typing import Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.config import File
from hybrid.cli.exits import ExitCode
from hybrid.cli.options import Cluster, chosen
from hybrid.cli.table import Column, table, text


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(
    context: typer.Context,
    file: File = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON. See docs/json.md.")] = False,
    _cluster: Cluster = "",
) -> None:
    """Check this machine, the hosts over SSH and the cluster; say what to repair."""
    from hybrid.cli import doctor_hosts
    from hybrid.cli.doctor_checks import all_checks

    checks = all_checks(file, chosen(context))
    hosts = doctor_hosts.surveys(file)
    failed_count, warning_count = (
        sum(check.state == state for check in checks) + doctor_hosts.count(hosts, state)
        for state in ("fail", "warn")
    )
    if json:
        answer = {
            "is_ok": failed_count == 0,
            "checks": [asdict(check) for check in checks],
            "hosts": doctor_hosts.as_json(hosts),
        }
        output.lines([json_text.dumps(answer, ensure_ascii=False)])
    else:
        columns = ("CHECK", "RESULT", Column("FOUND", is_long=True), Column("REMEDY", is_long=True))
        rows = ((check.name, check.state, check.found, check.remedy) for check in checks)
        output.show(table(columns, rows), *doctor_hosts.page(hosts))
        output.show(text(_verdict(failed_count, warning_count), "bold"))
    if failed_count:
        raise typer.Exit(ExitCode.FAILED)


def _verdict(failed_count: int, warning_count: int) -> str:
    if failed_count:
        return f"{words.count(failed_count, 'problem')} to repair."
    if warning_count:
        return f"No problem found, and {words.count(warning_count, 'warning')}."
    return "No problem found."
