"""The controller as a process: start it, ask how it is, follow it to its end."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import hybrid
from hybrid.adapters.clock import SystemClock
from hybrid.cli.exits import ExitCode, StopError
from hybrid.client import discover
from hybrid.core.errors import ConfigError

COMMAND_VARIABLE = "HYBRID_CONTROLLER_COMMAND"
"""Replaces `python -m hybrid.app`; for tests."""

LOG_NAME = discover.LOG_NAME
_EXIT_CONFIG, _EXIT_LOCKED = 2, 4
_TAIL_LINES = 12
_TAIL_BYTES = 16_384
_HEALTH_S = 2.0
POLL_S = 0.1

CLOCK = SystemClock()


@dataclass(frozen=True)
class Health:
    """What `/healthz` says."""

    state: str
    phase: str


@dataclass(frozen=True)
class Started:
    """A controller that was started here.

    Attributes:
        log_from: Where in the log its own lines begin.
    """

    process: subprocess.Popen[bytes]
    state_dir: Path
    log_path: Path
    log_from: int


def command(
    config: Path, state_dir: Path, *, is_closing: bool = False, drain_s: float | None = None
) -> list[str]:
    """Return the command line of a controller."""
    override = discover.ENVIRONMENT.get(COMMAND_VARIABLE)
    program = shlex.split(override) if override else [sys.executable, "-m", "hybrid.app"]
    closing = ["--closing"] if is_closing else []
    closing += [] if drain_s is None else ["--drain", f"{drain_s:g}"]
    return [*program, "run", "--config", str(config), "--state-dir", str(state_dir), *closing]


def environment() -> Mapping[str, str]:
    """Return the environment of a controller.

    A checkout that is not installed must stay importable: the controller's folder is
    another one than this process's.
    """
    env = dict(discover.ENVIRONMENT)
    root = Path(hybrid.__file__).parents[1]
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    if str(root) not in installed:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root), env.get("PYTHONPATH"))))
    return env


def make_folder(state_dir: Path) -> None:
    """Make the state folder, for this user only.

    Raises:
        ConfigError: It cannot be made or written.
    """
    try:
        state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(
            f"the state folder {state_dir} cannot be made ({error.strerror}); give this user "
            "write access above it, or set state_dir (or HYBRID_HOME) to another folder"
        ) from error
    if not os.access(state_dir, os.W_OK | os.X_OK):
        raise ConfigError(
            f"the state folder {state_dir} cannot be written; give this user write access to "
            "it, or set state_dir (or HYBRID_HOME) to another folder"
        )


def start(
    config: Path, state_dir: Path, *, is_closing: bool = False, drain_s: float | None = None
) -> Started:
    """Start a controller that outlives this process, with its output in its log.

    Raises:
        ConfigError: The log cannot be written, or the program does not start.
    """
    log_path = state_dir / LOG_NAME
    try:
        descriptor = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise ConfigError(f"{log_path} cannot be written ({error.strerror}); free it") from error
    with os.fdopen(descriptor, "ab") as log:
        log_from = log.seek(0, os.SEEK_END)
        try:
            process = subprocess.Popen(
                command(config, state_dir, is_closing=is_closing, drain_s=drain_s),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=state_dir,
                env=environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigError(f"the controller cannot be started ({error})") from error
    return Started(process, state_dir, log_path, log_from)


def health(url: str) -> Health | None:
    """Return how a controller is; `None` when it does not answer."""
    import json
    import urllib.error
    import urllib.request

    no_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with no_proxy.open(f"{url}/healthz", timeout=_HEALTH_S) as answer:
            content = json.loads(answer.read())
        return Health(state=str(content["state"]), phase=str(content.get("phase") or ""))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def wait_until_ready(
    state_dir: Path, *, show: Callable[[str], None], timeout_s: float, started: Started | None
) -> discover.Record:
    """Wait until the controller of a state folder is ready.

    Args:
        state_dir: Its folder.
        show: Told each phase.
        timeout_s: At most this long.
        started: The process, when it was started here: its death ends the wait.

    Raises:
        StopError: It died, or is not ready in time. It goes on in the second case.
    """
    end_s = CLOCK.monotonic_s() + timeout_s
    seen = Health(state="starting", phase="starting the controller")
    while True:
        if started is not None and (code := started.process.poll()) is not None:
            raise death(started, code)
        record = discover.read_record(state_dir)
        if record is not None and record.is_alive:
            seen = health(record.url) or seen
            if seen.state == "ready":
                return record
        elif started is None:
            raise StopError("the controller went away; run `hybrid up` again", ExitCode.UNHEALTHY)
        show(seen.phase or seen.state)
        if CLOCK.monotonic_s() >= end_s:
            log = state_dir / LOG_NAME
            raise StopError(
                f"the cluster is not ready after {timeout_s:g} s ({seen.phase or seen.state}). "
                f"It goes on: `hybrid status` shows it, the log is {log}, `hybrid down` ends it",
                ExitCode.UNHEALTHY,
            )
        CLOCK.sleep(POLL_S)


def death(started: Started, code: int) -> StopError:
    """Return why a controller that was started here has ended."""
    tail = last_lines(started.log_path, started.log_from)
    last = tail[-1].removeprefix("Error: ") if tail else "it said nothing"
    if code == _EXIT_CONFIG:
        return StopError(last, ExitCode.USAGE)
    if code == _EXIT_LOCKED:
        return StopError(last, ExitCode.REFUSED)
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    said = "\n".join(["its last lines:", *tail]) if tail else "it said nothing"
    return StopError(
        f"the controller ended ({how}); its log is {started.log_path}, {said}", ExitCode.FAILED
    )


def last_lines(path: Path, start: int = 0) -> Sequence[str]:
    """Return the last lines of a log, not older than an offset."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            # A controller that has begun a new log wrote all of this one.
            log.seek(max(start if start <= size else 0, size - _TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return ()
    found = [line.rstrip() for line in text.splitlines() if line.strip()]
    return tuple(found[-_TAIL_LINES:])


def wait_until_gone(
    pid: int,
    url: str | None,
    *,
    show: Callable[[str], None],
    timeout_s: float,
    process: subprocess.Popen[bytes] | None = None,
    state_dir: Path | None = None,
) -> bool:
    """Follow a controller to its end; `False` when it still lives after `timeout_s`.

    Args:
        pid: Its process.
        url: Where it listens, when known.
        show: Told each phase.
        timeout_s: At most this long.
        process: The same, when it was started here.
        state_dir: Where to learn `url` while it is not known.
    """
    end_s = CLOCK.monotonic_s() + timeout_s
    while True:
        if url is None and state_dir is not None:
            record = discover.read_record(state_dir)
            url = record.url if record is not None and record.pid == pid else None
        if process is not None:
            process.poll()  # takes the exit code, so that no zombie looks alive
        if not discover.is_alive(pid):
            return True
        seen = health(url) if url else None
        if seen is not None:
            show(seen.phase or seen.state)
        if CLOCK.monotonic_s() >= end_s:
            return False
        CLOCK.sleep(POLL_S)
