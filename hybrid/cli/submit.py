"""`hybrid submit`: queue a job, and if wished stay with it."""

from __future__ import annotations

import shlex
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.adapters.clock import SystemClock
from hybrid.cli import output
from hybrid.cli.data import entry_of
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.jobs import print_piece
from hybrid.cli.options import Cluster, Json, connect, duration_option, seconds
from hybrid.client.client import Checkpoint, DataEntry

if TYPE_CHECKING:
    from hybrid.client import Job
    from hybrid.core.models import JobState


class Site(StrEnum):
    """Where a job's driver may run."""

    ANY = "any"
    ONPREM = "onprem"
    CLOUD = "cloud"


class JobClass(StrEnum):
    """How long a job may wait."""

    INTERACTIVE = "interactive"
    BATCH = "batch"
    LONG = "long"
    BEST_EFFORT = "best-effort"


class SaveSignal(StrEnum):
    """What tells a driver to save."""

    NONE = ""
    USR1 = "USR1"
    TERM = "TERM"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("submit")(submit)


def submit(
    context: typer.Context,
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="What to run, after `--`.")
    ],
    working_dir: Annotated[
        str, typer.Option("--working-dir", "-w", metavar="DIR", help="Folder to send along.")
    ] = "",
    gpus: Annotated[float, typer.Option(min=0, help="GPUs of the driver itself.")] = 0,
    cpus: Annotated[float, typer.Option(min=0, help="CPUs of the driver itself.")] = 0,
    site: Annotated[Site, typer.Option(help="Where the driver may run.")] = Site.ANY,
    name: Annotated[str, typer.Option("--name", "-n", help="A name for people.")] = "",
    priority: Annotated[int, typer.Option(min=0, max=100, help="Higher goes first.")] = 50,
    nodes: Annotated[
        int, typer.Option(min=0, help="A gang: so many nodes at once, with --gpus on each.")
    ] = 0,
    job_class: Annotated[
        JobClass,
        typer.Option("--class", help="How long it may wait; best-effort only fills idle GPUs."),
    ] = JobClass.BATCH,
    max_wait: Annotated[
        str, duration_option("--max-wait", help="Longest acceptable wait, such as 10m.")
    ] = "",
    deadline: Annotated[
        str,
        typer.Option(
            metavar="WHEN", help="When it should be done: in 8h, or 2026-12-24T18:00 here."
        ),
    ] = "",
    lasts: Annotated[
        str, duration_option("--lasts", help="How long it runs, for --deadline.")
    ] = "",
    retries: Annotated[int, typer.Option(min=0, help="Starts after a failure.")] = 0,
    checkpoint: Annotated[
        bool,
        typer.Option("--checkpoint", help="It saves when it is asked to, so it may be moved."),
    ] = False,
    checkpoint_url: Annotated[
        str, typer.Option(metavar="URL", help="Where it saves; implies --checkpoint.")
    ] = "",
    save_time: Annotated[
        str, duration_option("--save-time", help="How long a save takes.", default="60s")
    ] = "60s",
    load_time: Annotated[
        str, duration_option("--load-time", help="And a load.", default="90s")
    ] = "90s",
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL[=SIZE][@PLACE]",
            help="Repeatable: copied to its node before it starts; see `hybrid data plan`.",
        ),
    ] = None,
    save_signal: Annotated[
        SaveSignal, typer.Option(help="Signal that asks it to save; it asks by itself without.")
    ] = SaveSignal.NONE,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            "-e",
            metavar="NAME=VALUE",
            help="Repeatable. Values are stored in the ledger as they are: no place for secrets.",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until it ends; exit 1 if it fails.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Like --wait, with the job's output.")
    ] = False,
    json: Json = False,
    _cluster: Cluster = "",
) -> None:
    """Queue a job.

    For example: `hybrid submit -w . -- python train.py`.
    """
    promise = None
    if checkpoint or checkpoint_url:
        promise = Checkpoint(
            url=checkpoint_url,
            save_s=seconds(save_time) or 0.0,
            load_s=seconds(load_time) or 0.0,
            signal=save_signal.value,
        )
    client = connect(context)
    job = client.submit(
        entrypoint_of(command),
        working_dir=working_dir or None,
        env=dict(_pair(text) for text in env or ()),
        gpus=gpus,
        cpus=cpus,
        site=site.value,
        name=name,
        priority=priority,
        nodes=nodes,
        job_class=job_class.value,
        max_wait_s=seconds(max_wait),
        deadline_at_s=instant_of(deadline),
        lasts_s=seconds(lasts) or 0.0,
        retries=retries,
        checkpoint=promise,
        data=[_entry(one) for one in data or ()],
    )
    if not (wait or follow):
        if json:
            output.write(client.read(f"jobs/{job.id}"))
        else:
            _announce(job)
        return
    output.say(f"Submitted {job.id}.")
    try:
        if follow:
            for piece in job.logs(follow=True):
                print_piece(piece, job.id if json else "")
        state = job.wait()
    except KeyboardInterrupt:
        output.say(f"\n{job.id} goes on. `hybrid logs -f {job.id}` or `hybrid cancel {job.id}`.")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if json:
        output.write(client.read(f"jobs/{job.id}"))
    _judge(job, state)


def entrypoint_of(command: list[str]) -> str:
    """Return the shell command that means these words; one word is a shell command itself."""
    return command[0] if len(command) == 1 else shlex.join(command)


def _entry(written: str) -> DataEntry:
    entry = entry_of(written)
    return DataEntry(url=entry.url, size_gb=entry.size_gb, place=entry.place)


def instant_of(text: str) -> float | None:
    """Return when a `--deadline` is, seconds since the epoch; `None` for no such word."""
    if not text:
        return None
    try:
        if text.startswith("in "):
            return SystemClock().now_s() + (seconds(text.removeprefix("in ")) or 0.0)
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise typer.BadParameter(
            f"--deadline takes 'in 8h', or a time such as 2026-12-24T18:00, not {text!r}"
        ) from None


def _announce(job: Job) -> None:
    output.lines(
        [
            f"Submitted {job.id} ({job.status().value}).",
            f"  hybrid logs -f {job.id}",
            f"  hybrid cancel {job.id}",
        ]
    )


def _judge(job: Job, state: JobState) -> None:
    """Say how the job ended. Raises `StopError` unless it succeeded."""
    if state.value != "succeeded":
        message = job.details().message
        because = f": {message}" if message else ""
        raise StopError(f"job {job.id} {state.value}{because}; see `hybrid logs {job.id}`")
    output.say(f"{job.id} succeeded.")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"--env takes NAME=VALUE, not {text!r}")
    return name, value
