"""Running a small Python program on a host, by the system's own OpenSSH.

So ~/.ssh/config, agents, ProxyJump and hardware keys work as they do by hand. One connection to
a host carries everything (ControlMaster). The program and its arguments, secrets included, go
over standard input: the only thing on a command line is the interpreter's path.
"""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from hybrid.adapters.ssh_fleet import refusals
from hybrid.adapters.ssh_fleet.conversation import Ended, converse
from hybrid.adapters.ssh_fleet.refusals import RemoteFailedError, shell_word
from hybrid.core.ports import Clock

Answer: TypeAlias = Mapping[str, Any]
"""What a program on a host answered; checked where it is read."""

_MARK = b"@hybrid "
_AFTER_S = 60  # a program that nobody waits for any more ends itself
_KEPT_S = 60  # an idle connection ends itself, should we be killed
_END_S = 5.0
_SHOWN_BYTES = 1_000
# Runs on whatever Python 3 the host has. The current folder must not stand in for a module, and a
# start-up file of the shell that asks a question takes a line or two.
_PROLOGUE = """\
#
#
#
import sys
sys.path[:] = [p for p in sys.path if p not in ("", ".")]
import json
import signal
order = json.loads({order})
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.alarm(order["limit_s"])
def say(kind, content):
    sys.stdout.write("\\n{mark}" + json.dumps({{"kind": kind, "content": content}}) + "\\n")
    sys.stdout.flush()
if sys.version_info < (3, 8):
    say("too_old", "%d.%d.%d" % sys.version_info[:3])
    sys.exit(0)
program = {{"__name__": "hybrid_on_host", "say": say}}
exec(compile(order["source"], order["name"], "exec"), program)
say("answer", program["main"](**order["arguments"]))
"""


@dataclass(frozen=True)
class SshSettings:
    """How `ssh` is called.

    Attributes:
        options: As after `-o`, before those of the user's own file.
        config_file: Read instead of ~/.ssh/config; `""` for that.
        connect_limit_s: For the connection and the first words.
    """

    options: tuple[str, ...] = ()
    config_file: str = ""
    connect_limit_s: float = 10.0


@dataclass(frozen=True)
class Destination:
    """A host, as `ssh` finds it.

    Attributes:
        address: `HOST`, `USER@HOST` or `ssh://USER@HOST:PORT`.
        python: Interpreter there; `~/` is the home folder of the user there.
    """

    address: str
    python: str = "python3"


@dataclass(frozen=True)
class Program:
    """A program for a host: standard library only, with a function `main`."""

    name: str
    source: str


@lru_cache
def own_program(name: str) -> Program:
    """Return a program of `on_host`."""
    place = files("hybrid.adapters.ssh_fleet") / "on_host" / f"{name}.py"
    return Program(name, place.read_text(encoding="utf-8"))


class Ssh:
    """Runs programs on hosts. May be used by several threads.

    Args:
        sockets: Folder of our own for the connections' sockets: short, since their paths have a
            limit of 107 bytes, of which OpenSSH takes 58.
        settings: How `ssh` is called.
        clock: Time.
    """

    def __init__(self, sockets: Path, settings: SshSettings, clock: Clock) -> None:
        self._sockets = sockets
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._connected: set[str] = set()

    def run(
        self,
        to: Destination,
        program: Program,
        arguments: Mapping[str, object],
        *,
        step: str,
        limit_s: float,
        on_note: Callable[[Answer], None] | None = None,
    ) -> Answer:
        """Run a program's `main(**arguments)` on a host and return its answer.

        Args:
            to: The host.
            program: What to run.
            arguments: JSON values.
            step: What this is, for the message.
            limit_s: For all of it, the connection included.
            on_note: Gets what the program says before its answer.

        Raises:
            SshError: It was not done; the class says what to do.
        """
        heard: list[Answer] = []
        old: list[str] = []
        printed = b""
        words = _words(program, arguments, limit_s)

        def on_line(line: bytes) -> None:
            nonlocal printed
            if not line.startswith(_MARK):
                # What a shell's start-up file prints is none of ours, unless nothing else comes.
                printed = line if line.strip() else printed
                return
            with suppress(ValueError):
                message = json.loads(line[len(_MARK) :])
                if message["kind"] == "answer":
                    heard.append(message["content"])
                elif message["kind"] == "too_old":
                    old.append(str(message["content"]))
                elif on_note is not None:
                    on_note(message["content"])

        command = [*self._ssh(to.address), "--", to.address, f"exec {shell_word(to.python)} -"]
        with self._lock:
            self._sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connected.add(to.address)
        ended = self._converse(command, words, on_line, limit_s=limit_s)
        if heard:
            return heard[-1]
        # What we sent is not to be shown, should it come back.
        is_ours = printed.strip() in map(bytes.strip, words.splitlines())
        other = "" if is_ours else printed[-_SHOWN_BYTES:].decode(errors="replace")
        if old:
            raise refusals.too_old(to.address, to.python, old[-1])
        if ended.code is None:
            # The connection may be one to a machine that is gone: the next step makes another.
            self._disconnect(to.address)
            said = ended.said.strip() or other
            raise refusals.too_slow(to.address, step, limit_s, said, by_hand=self._hand(to.address))
        raise refusals.of_ssh(
            to.address,
            to.python,
            ended.code,
            ended.said,
            printed=other,
            by_hand=self._hand(to.address),
        )

    def close(self) -> None:
        """End all connections. Can be used again."""
        with self._lock:
            addresses, self._connected = self._connected, set()
        for address in sorted(addresses):
            self._disconnect(address)
        with suppress(OSError):
            self._sockets.rmdir()

    def _converse(
        self,
        command: list[str],
        words: bytes,
        on_line: Callable[[bytes], None],
        *,
        limit_s: float,
    ) -> Ended:
        try:
            return converse(command, words, on_line, limit_s=limit_s, clock=self._clock)
        except OSError as err:
            raise RemoteFailedError(
                f"`ssh` cannot be started on this machine: {err.strerror}",
                "install OpenSSH's client (Debian: `apt-get install openssh-client`)",
            ) from err

    def _disconnect(self, address: str) -> None:
        command = [*self._ssh(address), "-O", "exit", "--", address]
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_END_S,
                check=False,
            )

    def _hand(self, address: str) -> str:
        """Return the `ssh` that a person can call to see the same."""
        file = ["-F", self._settings.config_file] if self._settings.config_file else []
        options = [word for option in self._settings.options for word in ("-o", option)]
        return shlex.join(["ssh", *file, *options, address])

    def _ssh(self, _address: str) -> list[str]:
        settings = self._settings
        file = ["-F", settings.config_file] if settings.config_file else []
        ours = {
            "BatchMode": "yes",
            "ConnectTimeout": max(1, round(settings.connect_limit_s)),
            "ControlMaster": "auto",
            "ControlPath": self._sockets / "%C",
            "ControlPersist": _KEPT_S,
            "ServerAliveInterval": 5,
            "ServerAliveCountMax": 2,
            # What a file of the user's sets up for work by hand.
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "PermitLocalCommand": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            "LogLevel": "ERROR",
        }
        options = [*(f"{key}={value}" for key, value in ours.items()), *settings.options]
        return ["ssh", *file, *(word for option in options for word in ("-o", option))]


def _words(program: Program, arguments: Mapping[str, object], limit_s: float) -> bytes:
    order = {
        "name": program.name,
        "source": program.source,
        "arguments": dict(arguments),
        "limit_s": math.ceil(limit_s) + _AFTER_S,
    }
    text = _PROLOGUE.format(order=repr(json.dumps(order)), mark=_MARK.decode())
    return text.encode("ascii")
