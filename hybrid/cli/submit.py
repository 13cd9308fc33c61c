"""`hybrid submit`: queue a job, and if wished stay with it."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.jobs import print_piece
from hybrid.cli.options import Cluster, Json, connect

if TYPE_CHECKING:
    from hybrid.client import Job
    from hybrid.core.models import JobState


class Site(StrEnum):
    """Where a job's driver may run."""

    ANY = "any"
    ONPREM = "onprem"
    CLOUD = "cloud"


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
