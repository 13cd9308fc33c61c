"""`hybrid trace record`: the running cluster's demand as a trace."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.options import Cluster, Json, connect, duration_option, seconds
from hybrid.cli.progress import Progress

if TYPE_CHECKING:
    from hybrid.core.policy.plan import Snapshot
    from hybrid.sim.recorded.reading import RecordFiles

_MOST_JOBS = 10_000
_HOUR_S = 3_600.0


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("record")(record)


def record(
    context: typer.Context,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write it; gzip if .gz."),
    ],
    since: Annotated[
        str, duration_option("--since", help="Of this last time only.", default="30d")
    ] = "30d",
    json: Json = False,
    _cluster: Cluster = "",
) -> None:
    """Write the running cluster's demand as a trace, to be simulated with other policies.

    Jobs are as the ledger has them. Of work that only Ray knew, as much is known as the controller
    recorded: docs/traces.md says what is exact and what is a guess.
    """
    from hybrid.sim.recorded.tracing import demand_trace
    from hybrid.sim.traces import opening
    from hybrid.sim.traces.summary import summary

    client = connect(context)
    with Progress("Asking for the jobs") as progress:
        jobs = client.jobs(limit=_MOST_JOBS)
        name = words.safe(client.status().cluster.name)
        since_s = jobs.at_s - (seconds(since) or 0.0)
        files = _record_of(client.address)
        first: list[float] = []
        progress.show("reading what was recorded")
        trace = demand_trace(
            name,
            jobs.jobs,
            _snapshots(files, first, progress) if files else (),
            since_s=since_s,
            now_s=jobs.at_s,
        )
        opening.save(trace, out)
    _say_what_lacks(first[0] if first else None, since_s, jobs.at_s, len(jobs.jobs))
    view = summary(trace, str(out))
    if json:
        output.write(view.model_dump_json().encode())
        return
    from hybrid.cli.trace.page import page

    output.show(*page(view))


def _record_of(address: str) -> RecordFiles | None:
    """Return what the cluster's controller recorded, when it runs on this machine."""
    from hybrid.adapters.decision_files import FOLDER, SUFFIX
    from hybrid.client import discover
    from hybrid.sim.recorded.reading import RecordFiles

    here = discover.record_at(address)
    if here is None:
        return None
    folder = here.state_dir / FOLDER
    return RecordFiles.at(folder) if any(folder.glob(f"*{SUFFIX}")) else None


def _snapshots(files: RecordFiles, first: list[float], progress: Progress) -> Iterator[Snapshot]:
    def on_part(part: float) -> None:
        progress.show(f"reading what was recorded: {math.floor(part * 100)} %")

    for recorded in files.each(on_part):
        snapshot = recorded.decision.snapshot
        if not first:
            first.append(snapshot.now_s)
        yield snapshot
    for path, tally in files.tallies.items():
        for each in tally.result():
            if not each.is_kept:
                output.say(f"{path}: {each.count} left out: {each.reason}")


def _say_what_lacks(first_s: float | None, since_s: float, now_s: float, job_count: int) -> None:
    if job_count >= _MOST_JOBS:
        output.say(f"Only the newest {_MOST_JOBS:,} jobs are in it; the API gives no more.")
    if first_s is None:
        output.say(
            "Work that only Ray knew (tasks, actors, services) is not in it: no decisions of that "
            "time are recorded on this machine. See controller.record"
        )
    elif first_s - since_s > _HOUR_S:
        output.say(
            f"Work that only Ray knew is in it for the last {words.duration(now_s - first_s)}: so "
            "far back goes the record of decisions."
        )
