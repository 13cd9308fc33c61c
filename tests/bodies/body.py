"""One body: a machine that is on until its process 1 ends."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.node.processes import Process, descendants, find
from tests.bodies import init
from tests.bodies.metadata import Answers, Ask, MetadataServer, Told
from tests.bodies.network import Network
from tests.bodies.relay import Relay

ROOT = Path(__file__).parents[2]
_NAMESPACES = (
    *("--net", "--pid", "--fork", "--kill-child"),
    *("--mount", "--uts", "--ipc", "--mount-proc"),
)
_LIMIT_S = 20.0


@dataclass(frozen=True)
class Boot:
    """What a machine is switched on with.

    Attributes:
        hostname: Its name.
        user_data: The script that the cloud's agent runs at the first boot.
        answers: Its metadata service.
        shutdown_script: Run when its power button is pressed; `""` for none.
        hosts: Addresses by names that it knows.
        api_port: A port of this machine's loopback that it reaches on its own: its cloud's API;
            0 for none.
    """

    hostname: str
    user_data: str
    answers: Answers = field(default=lambda _: Told(404))
    shutdown_script: str = ""
    hosts: Mapping[str, str] = field(default_factory=dict)
    api_port: int = 0


class Body:
    """A machine, switched on.

    Attributes:
        number: The last part of its address.
        folder: Its files and its console, for whoever wants to look at them from outside.
        asked: The paths that it asked its metadata service for.
    """

    def __init__(self, network: Network, boot: Boot, *, kept: Sequence[Path] = ()) -> None:
        self.network = network
        self.boot = boot
        self.number = network.next_number()
        self.address = network.address_of(self.number)
        self.folder = network.folder / str(self.number)
        self.asked: list[str] = []
        self._write(kept)
        self._metadata = MetadataServer(self.folder / "metadata", self._answer)
        self._api = Relay(self.folder / "api", boot.api_port) if boot.api_port else None
        with (self.folder / "console").open("wb") as console:
            # Its input stays open for as long as this process lives: its end cuts the power.
            self._process = subprocess.Popen(
                ["unshare", *_NAMESPACES, sys.executable, "-P", "-u", init.__file__, self.folder],
                stdin=subprocess.PIPE,
                stdout=console,
                stderr=console,
                env={"PATH": init.PATH},
                cwd="/",
            )
        self._first = self._find_first()
        if self._first is not None:
            with contextlib.suppress(subprocess.CalledProcessError):  # it died meanwhile
                network.plug(self.number, self._first.pid)

    @property
    def is_on(self) -> bool:
        """Whether its process 1 lives."""
        return self._process.poll() is None

    @property
    def was_shut_down(self) -> bool:
        """Whether it switched itself off in order, and its power was not cut."""
        return self.console().rstrip().endswith("init: off")

    def cut_power(self) -> None:
        """Kill its process 1, and with it everything in it, without a warning."""
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._first.pid, signal.SIGKILL)
        self._process.wait(_LIMIT_S)

    def press_power_button(self) -> None:
        """Ask it to shut down, as a cloud does that wants a machine back."""
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._first.pid, signal.SIGPWR)

    def cut_network(self) -> None:
        """Take it off the network. It still has its metadata service, as in a real cloud."""
        self.network.cut(self.number)

    def heal_network(self) -> None:
        """Put it back."""
        self.network.heal(self.number)

    def pids(self) -> list[int]:
        """Return its processes, by their ids on this machine."""
        mine = descendants([self._process.pid])
        return [process.pid for process in mine if find(process.pid) is not None]

    def inside(self, path: str) -> Path:
        """Return where a path of the body's own file system is on this machine."""
        return self.folder / "files" / path.strip("/")

    def console(self) -> str:
        """Return what it and its user data said."""
        return (self.folder / "console").read_text(errors="replace")

    def story(self) -> str:
        """Return all that can be told of it, for the message of a failure."""
        logs = [self.folder / "console", *(self.folder / "files").glob("**/hybrid/**/*.log")]
        logs += (self.folder / "files").glob("**/hybrid/**/status.json")
        return "\n".join(
            f"--- {self.boot.hostname} {path.name}\n{path.read_text(errors='replace')[-3000:]}"
            for path in logs
            if path.is_file()
        )

    def close(self) -> None:
        """Cut its power and forget its metadata service; its folder stays with the network."""
        self.cut_power()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._metadata.close()
        if self._api is not None:
            self._api.close()

    # --- parts ------------------------------------------------------------------------------

    def _write(self, kept: Sequence[Path]) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        facts = {
            "hostname": self.boot.hostname,
            "address": self.address,
            "gateway": self.network.address,
            "hosts": dict(self.boot.hosts),
            "api_port": self.boot.api_port,
            "kept": [str(p) for p in {self.folder, ROOT, *_interpreter(), *kept}],
            "sealed": [str(p) for p in {ROOT, *_interpreter()}],
        }
        (self.folder / "body.json").write_text(json.dumps(facts))
        (self.folder / "user_data").write_text(self.boot.user_data)
        if self.boot.shutdown_script:
            (self.folder / "shutdown_script").write_text(self.boot.shutdown_script)

    def _answer(self, ask: Ask) -> Told:
        self.asked.append(ask.path)
        return self.boot.answers(ask)

    def _find_first(self) -> Process | None:
        """Return its process 1 as this machine knows it; `None` when it did not live."""
        end_s = time.monotonic() + _LIMIT_S
        while time.monotonic() < end_s and self._process.poll() is None:
            for process in descendants([self._process.pid]):
                if process.parent_pid == self._process.pid:
                    return process
            time.sleep(0.005)
        return None


def _interpreter() -> set[Path]:
    return {Path(place).resolve() for place in (sys.prefix, sys.base_prefix)}
