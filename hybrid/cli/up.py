"""`hybrid up`: check, show, ask, start, wait."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output
from hybrid.cli.config import File, FromTerraform
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.options import Cluster, Yes, agree, duration_option, seconds

if TYPE_CHECKING:
    from hybrid.cli.closing import Target
    from hybrid.cli.controller import Started
    from hybrid.client.discover import Record
    from hybrid.settings import Layer, Settings

_STOP_S = 60.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("up")(up)


def up(
    context: typer.Context,
    file: File = None,
    yes: Yes = False,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Run the controller here, until Ctrl-C.")
    ] = False,
    timeout: Annotated[
        str, duration_option("--timeout", help="Give up waiting after this long.", default="3m")
    ] = "3m",
    from_terraform: FromTerraform = "",
    _cluster: Cluster = "",
) -> None:
    """Start a cluster from FILE, or bring the one that runs in line with it."""
    from hybrid.cli import closing, config

    layers = config.terraform_layers(from_terraform, file)
    settings = config.load(file, layers)
    agree(context, settings)
    _check_ledger(closing.of_settings(settings))
    _bring_up(settings, seconds(timeout) or 0.0, layers, is_yes=yes, is_foreground=foreground)


def _bring_up(
    settings: Settings,
    timeout_s: float,
    layers: Mapping[str, Layer | None],
    *,
    is_yes: bool,
    is_foreground: bool = False,
) -> None:
    from hybrid.cli import changes, controller, remains

    state_dir = settings.state_path
    running = _running(state_dir)
    if running is None:
        changes.check_takeover(state_dir, settings)
        _confirm_start(settings, is_yes=is_yes)
    elif not _is_to_be_replaced(running, settings, timeout_s, is_yes=is_yes):
        return
    controller.make_folder(state_dir)
    is_there = remains.is_crashed(state_dir) or remains.live_nodes(state_dir)
    is_fresh = running is None and not is_there
    noted = remains.last_ledger(state_dir)
    _keep(layers, state_dir)
    _remember(settings)
    _link(settings)
    if is_foreground:
        _become(_file_of(settings), state_dir)
    started = controller.start(_file_of(settings), state_dir)
    try:
        record = _wait(settings.name, state_dir, timeout_s, started)
    except KeyboardInterrupt:
        _take_back(started, settings, is_fresh=is_fresh)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except StopError as error:
        if error.code is ExitCode.REFUSED and _running(state_dir) is not None:
            # another `hybrid up` was faster by a moment
            _bring_up(settings, timeout_s, layers, is_yes=is_yes)
            return
        if started.process.poll() is not None:
            remains.note_ledger(state_dir, noted)  # it has rented nothing in another one
        if running is not None and started.process.poll() is not None:
            raise _without_controller(error, settings) from error
        raise
    _announce(record)


def _check_clouds(settings: Settings) -> None:
    """Refuse what the controller would refuse, before anything is shown, asked or written."""
    from hybrid.settings.advice import unready_clouds

    if problems := list(unready_clouds(settings)):
        raise StopError(f"{settings.source}: {'; '.join(problems)}", ExitCode.USAGE)


def _keep(layers: Mapping[str, Layer | None], state_dir: Path) -> None:
    """Keep what Terraform said where the controller, and every later command, reads it."""
    from hybrid.settings import layers as kept

    for name, layer in layers.items():
        if layer is None:
            kept.remove(state_dir, name)
        else:
            kept.store(state_dir, layer)


def _remember(settings: Settings) -> None:
    from hybrid.cli import changes, closing, remains

    remains.remember(
        settings.state_path,
        _file_of(settings),
        closing.ledger_of(settings),
        changes.values_of(settings),
    )


def _without_controller(error: StopError, settings: Settings) -> StopError:
    return StopError(
        f"{error}\nThe nodes of {settings.name} go on without a controller; rented ones end with "
        "their lease. Repair that, and run `hybrid up` again",
        error.code,
    )


def _running(state_dir: Path) -> Record | None:
    """Return the record of the controller that runs or is just starting."""
    from hybrid.cli import closing
    from hybrid.client import discover

    record = discover.read_record(state_dir)
    return record if record is not None and record.is_alive else closing.wait_for_start(state_dir)


def _confirm_start(settings: Settings, *, is_yes: bool) -> None:
    """Show what is about to be started, and have it confirmed where that may cost money."""
    from hybrid.adapters.clock import SystemClock
    from hybrid.app import offline
    from hybrid.cli import up_plan
    from hybrid.cli.asking import confirm

    offered = offline.checked(settings, SystemClock())
    _check_clouds(settings)
    output.show(*up_plan.plan_page(settings, offered))
    if up_plan.may_rent(settings):
        confirm("Start it?", is_yes=is_yes)


def _is_to_be_replaced(
    running: Record, settings: Settings, timeout_s: float, *, is_yes: bool
) -> bool:
    """Wait for the controller that runs; end it when the file differs from what it runs with.

    Returns:
        Whether it was ended, and a new one has to take over. Otherwise all was said.
    """
    from hybrid.cli import changes

    output.say(f"Cluster {running.cluster} is running already (pid {running.pid}).")
    # ready first: a signal to one that still starts takes its whole beginning back
    record = _wait(running.cluster, running.state_dir, timeout_s, None)
    if changes.agreed(record, settings, is_yes=is_yes):
        changes.stop_controller(record)
        return True
    file = _file_of(settings)
    if record.config_path and Path(record.config_path) != file:
        output.say(f"It was started from {record.config_path}, which says the same as {file}.")
        _remember(settings)
    _announce(record)
    return False


def _check_ledger(target: Target) -> None:
    """Refuse to start with another ledger while the last one may hold rented instances.

    The new one would know nothing of them, and nobody would return them.
    """
    if not target.ledger_problem:
        return
    rented = [line for line in target.left() if not line.startswith("node ")]
    if rented:
        raise StopError("\n".join([target.ledger_problem, *rented]), ExitCode.USAGE)


def _file_of(settings: Settings) -> Path:
    file = settings.origin.file
    if file is None:
        raise StopError(f"{settings.source} is not a file", ExitCode.USAGE)
    return file


def _wait(name: str, state_dir: Path, timeout_s: float, started: Started | None) -> Record:
    from hybrid.cli.controller import wait_until_ready
    from hybrid.cli.progress import Progress

    with Progress(f"Starting {name}" if started else f"Waiting for {name}") as progress:
        return wait_until_ready(state_dir, show=progress.show, timeout_s=timeout_s, started=started)


def _announce(record: Record) -> None:
    from hybrid.client import Client

    with Client(cluster=str(record.state_dir)) as client:
        view = client.status()
    lines = [f"Cluster {record.cluster} is up. {view.summary}".rstrip()]
    if view.cluster.dashboard_url:
        lines.append(f"  Ray dashboard  {view.cluster.dashboard_url}")
    lines += [
        f"  log            {record.state_dir / 'controller.log'}",
        "  look           hybrid status --watch",
        "  submit         hybrid submit -w . -- python train.py",
        "  end            hybrid down",
    ]
    output.lines(lines)


def _link(settings: Settings) -> None:
    """Make a cluster with a folder of its own findable by its name."""
    usual = settings.origin.home / settings.name
    if usual == settings.state_path or usual.exists() or usual.is_symlink():
        return
    with suppress(OSError):  # a convenience: `--cluster FOLDER` works without it
        usual.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        usual.symlink_to(settings.state_path)


def _become(config: Path, state_dir: Path) -> None:
    """Turn this process into the controller. Does not return."""
    from hybrid.cli import controller

    words = controller.command(config, state_dir)
    if sys.stderr.isatty():  # where the log goes
        words.append("--pretty")
    output.say("Running in the foreground; Ctrl-C ends it.")
    os.execvpe(words[0], words, dict(controller.environment()))  # noqa: S606 - no shell is meant


def _take_back(started: Started, settings: Settings, *, is_fresh: bool) -> None:
    """End what `up` began, and say what is left, or that nothing is.

    What ran before (`is_fresh` is false) is not ended: only its new controller is.
    """
    from hybrid.cli import closing

    output.say("\nInterrupted: ending what was started. Ctrl-C again leaves it as it is.")
    try:
        is_gone = _end(started, settings.name)
        if is_gone and is_fresh and closing.of_settings(settings).left():
            # it died so early that it could not take back its own beginnings
            is_gone = _close(started, settings)
    except KeyboardInterrupt:
        is_gone = started.process.poll() is not None
    left = closing.of_settings(settings).left()
    if not is_gone:
        left.insert(0, f"the controller: process {started.process.pid}, log {started.log_path}")
    if left:
        output.say("\n".join(["Still there:", *(f"  {line}" for line in left)]))
        output.say("`hybrid down` ends it.")
    else:
        output.say("Nothing is left.")


def _end(started: Started, name: str) -> bool:
    """Ask the controller to end; whether it did."""
    from hybrid.cli import controller
    from hybrid.cli.progress import Progress

    pid = started.process.pid
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    with Progress(f"Stopping {name}") as progress:
        return controller.wait_until_gone(
            pid,
            None,
            show=progress.show,
            timeout_s=_STOP_S,
            process=started.process,
            state_dir=started.state_dir,
        )


def _close(started: Started, settings: Settings) -> bool:
    """Run a controller that only closes, to its end; whether it ended."""
    from hybrid.cli import controller
    from hybrid.cli.progress import Progress

    closer = controller.start(_file_of(settings), started.state_dir, is_closing=True)
    with Progress(f"Closing {settings.name}") as progress:
        return controller.wait_until_gone(
            closer.process.pid,
            None,
            show=progress.show,
            timeout_s=_STOP_S,
            process=closer.process,
            state_dir=started.state_dir,
        )
