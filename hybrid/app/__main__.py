"""The controller's process: `python -m hybrid.app run`.

Ray's processes are started before the heavy modules are imported, so that both happen at once.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import hybrid
from hybrid.adapters.state import AlreadyRunningError, StateFolder
from hybrid.app.base import LocalBase
from hybrid.client.discover import process_mark
from hybrid.core.errors import ConfigError, HybridError
from hybrid.settings import Settings, environment, load

if TYPE_CHECKING:
    from hybrid.control.runner import Outcome, Runner
    from hybrid.core.ports import Ledger, Mode

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_CONFIG = 2
EXIT_CONFLICT = 4


def main(argv: Sequence[str] | None = None) -> int:
    """Run a controller until it ends; return its exit code.

    Returns:
        0 after a clean end, 1 when something of ours could not be ended, 2 for a wrong
        configuration, 4 when another controller has the cluster. The last line on standard
        error says why.
    """
    parser = argparse.ArgumentParser(prog="python -m hybrid.app", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the controller in the foreground")
    run.add_argument("--config", default=None, help="hybrid.yaml; the packaged default if absent")
    run.add_argument("--state-dir", default=None, help="state folder, over the configuration's")
    run.add_argument("--closing", action="store_true", help="take the cluster down, then exit")
    run.add_argument("--drain", type=float, default=None, help="seconds that work may go on then")
    run.add_argument("--pretty", action="store_true", help="log for people instead of JSON")
    try:
        return _run(parser.parse_args(argv))
    except AlreadyRunningError as error:
        _say(f"Error: {error}")
        return EXIT_CONFLICT
    except ConfigError as error:
        _say(f"Error: {error}")
        return EXIT_CONFIG
    except HybridError as error:
        _say(f"Error: {error}")
        return EXIT_FAILED


class _Life:
    """What this process was told and how far it came; a signal may come at any moment.

    Attributes:
        is_stop_asked: A signal asked for the end.
        is_restart_asked: The configuration was changed, and the controller starts again.
    """

    def __init__(self) -> None:
        self.is_stop_asked = False
        self.is_restart_asked = False
        self._runner: Runner | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    @property
    def is_ready(self) -> bool:
        """Whether the cluster has been up in this run."""
        return self._runner is not None and self._runner.loop.is_ready

    def hand_over(self, runner: Runner) -> None:
        """Let `runner` follow the signals, those that came before included."""
        self._runner = runner
        if self.is_stop_asked:
            runner.stop()

    def restart(self) -> None:
        """Begin again with the configuration as it is now; nodes and running work stay."""
        self.is_restart_asked = True
        if self._runner is not None:
            self._runner.stop()

    def _stop(self, _number: int, _frame: object) -> None:
        self.is_stop_asked = True
        if self._runner is not None:
            self._runner.stop()


def _run(options: argparse.Namespace) -> int:
    life = _Life()
    settings = load(
        Path(options.config) if options.config else None,
        environment(),
        state_dir=Path(options.state_dir) if options.state_dir else None,
    )
    _check_version(settings)
    if not options.closing:
        _check_clouds(settings)
        _check_address(settings)
    path = Path(options.state_dir) if options.state_dir else settings.state_path
    state = StateFolder(path.resolve())
    state.open()
    base = LocalBase(settings, state)
    if life.is_stop_asked:
        return EXIT_OK
    try:
        if not options.closing:
            base.start()
        return _control(settings, state, base, options, life)
    except BaseException:
        if base.is_started_here and not life.is_ready:
            # What this run started must not outlive its failure.
            base.stop()
        raise


def _mode(mode: Mode, options: argparse.Namespace, *, now_s: float) -> Mode:
    """Return what is in force from now on.

    Whoever closes after a crash keeps the time that was given to work before.
    """
    by_s = mode.close_by_s if mode.is_closing and options.closing else None
    if options.closing and options.drain is not None:
        by_s = now_s + max(0.0, options.drain)
    return mode.model_copy(update={"is_closing": options.closing, "close_by_s": by_s})


def _control(
    settings: Settings,
    state: StateFolder,
    base: LocalBase,
    options: argparse.Namespace,
    life: _Life,
) -> int:
    from hybrid.adapters.arenas import limit_arenas
    from hybrid.adapters.clock import SystemClock
    from hybrid.adapters.ledger import open_ledger, sqlite_url
    from hybrid.api.server import make_app, serve, url_of
    from hybrid.app.compose import make_controller, make_providers
    from hybrid.app.layers import ConfigLayers, places_of
    from hybrid.control import log
    from hybrid.control.guards import missing_places
    from hybrid.control.runner import Outcome
    from hybrid.control.steady import SteadyClock

    log.configure(is_pretty=options.pretty)
    limit_arenas()
    clock = SystemClock()
    ledger_url = settings.controller.ledger_url or sqlite_url(state.path / "ledger.db")
    ledger = open_ledger(ledger_url, cluster_id=state.cluster_id)
    state.keep_cluster_id(ledger.cluster_id)
    providers = make_providers(
        settings, state, base.ray_dir, cluster_id=ledger.cluster_id, clock=clock
    )
    # Before we take the ledger over: a start that is refused must not stop the controller that
    # works.
    if problem := missing_places(ledger, places_of(settings)):
        raise ConfigError(problem)
    ledger.acquire(f"{platform.node()}:{os.getpid()}", now_s=clock.now_s())
    ledger.set_mode(_mode(ledger.mode(), options, now_s=clock.now_s()))
    port = _port(settings, state)
    nodes_host = _nodes_host(settings)
    # Where nodes ask to join. Without an address of its own the head has nodes here only.
    url = url_of(nodes_host or settings.head.node_ip or settings.controller.host, port)
    controller = make_controller(
        settings,
        state,
        base,
        ledger=ledger,
        providers=providers,
        url=url,
        # Notices when the wall clock is set, so that no stored instant changes its meaning.
        clock=SteadyClock(clock),
    )
    controller.runner.loop.start()
    server = serve(
        make_app(
            controller.desk,
            state.secret("api_token"),
            layers=ConfigLayers(
                settings,
                state.path,
                environment(),
                missing=lambda places: missing_places(ledger, places),
                is_ready=lambda: life.is_ready and not controller.runner.loop.mode.is_closing,
                restart=life.restart,
            ),
            nodes_host=nodes_host,
        ),
        settings.controller.host,
        port,
        nodes_host=nodes_host,
    )
    controller.runner.is_fresh = base.is_started_here
    life.hand_over(controller.runner)
    state.publish(
        {
            "pid": os.getpid(),
            "url": server.url,
            "cluster": settings.name,
            "config_path": str(settings.origin.file or settings.source),
            "version": hybrid.__version__,
            "started_at_s": clock.now_s(),
            **process_mark(os.getpid()),
        }
    )
    try:
        outcome = controller.runner.run()
    finally:
        server.stop()
        state.unpublish()
    is_again = outcome is Outcome.STOPPED and life.is_restart_asked and not life.is_stop_asked
    code = EXIT_OK if is_again else _farewell(controller.runner, outcome, base, ledger)
    controller.close()
    if is_again:
        _say("The configuration was changed; the controller starts again with it")
        _begin_again()
    return code


def _begin_again() -> None:
    """Turn this process into a fresh controller with the same arguments. Does not return."""
    words = [sys.executable, "-m", "hybrid.app", *sys.argv[1:]]
    os.execv(words[0], words)  # noqa: S606 - no shell is meant


def _farewell(runner: Runner, outcome: Outcome, base: LocalBase, ledger: Ledger) -> int:
    """Say what is left, if anything; return the exit code."""
    from hybrid.control.runner import Outcome

    if outcome is Outcome.FENCED:
        _say("Error: another controller took over this cluster's ledger; this one has stopped")
        return EXIT_CONFLICT
    if outcome is Outcome.LOST:
        _say(
            "Error: the ledger was deleted or replaced, so this controller has stopped. `hybrid "
            "up` makes a new one from what the clouds list; rented instances end themselves when "
            "their lease is over"
        )
        return EXIT_FAILED
    if outcome is Outcome.STOPPED:
        rented = len(ledger.live_instances())
        _say(
            f"The controller has stopped. The head, {len(base.fleet.hosts())} on-prem hosts and "
            f"{rented} rented instances go on; rented ones end themselves when their lease is "
            f"over. `hybrid up` takes over again, `hybrid down` ends everything"
        )
        return EXIT_OK
    left = [*runner.loop.left_behind, *base.stop_removed()]
    if left:
        _say(f"Error: not everything could be ended: {'; '.join(left)}")
        return EXIT_FAILED
    base.clean()
    return EXIT_OK


def _port(settings: Settings, state: StateFolder) -> int:
    """Return the API's port: the configured one, or a free one that is kept over restarts.

    Kept, because nodes that boot now ask the controller that is there when they are up.
    """
    if settings.controller.port != "auto":
        return int(settings.controller.port)
    return state.remembered_port(settings.controller.host, _nodes_host(settings))


def _nodes_host(settings: Settings) -> str:
    """Return a second address to listen on, for nodes only; `""` when none is needed."""
    host, node_ip = settings.controller.host, settings.head.node_ip
    is_covered = host == node_ip or ip_address(host).is_unspecified
    return "" if is_covered else node_ip


def _check_version(settings: Settings) -> None:
    installed = version("ray")
    if settings.ray.version not in (None, installed):
        raise ConfigError(
            f"{settings.source}: ray.version is {settings.ray.version}, but Ray {installed} is "
            f"installed here, and every node of a cluster needs the same. Install "
            f"ray[default]=={settings.ray.version}, or correct ray.version"
        )


def _check_address(settings: Settings) -> None:
    host = settings.head.node_ip
    if not host:
        return
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise ConfigError(
                f"{settings.source}: head.address is {host}, which is no address of this machine "
                f"({error.strerror}). The head runs where `hybrid up` runs: write the address at "
                f"which nodes reach this machine (`ip -brief address` lists them), or local"
            ) from error


def _check_clouds(settings: Settings) -> None:
    from hybrid.settings.advice import unready_clouds

    if problems := list(unready_clouds(settings)):
        raise ConfigError(f"{settings.source}: {'; '.join(problems)}")


def _say(text: str) -> None:
    with suppress(OSError):  # the log's disk may be full
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - the starter reads the last line


if __name__ == "__main__":
    sys.exit(main())
