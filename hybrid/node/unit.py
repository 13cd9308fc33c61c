"""A systemd unit that starts a node again after a reboot of its machine."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hybrid.node.environment import TAG

_LIMIT_S = 30.0
_SYSTEM = Path("/etc/systemd/system")


class _HangsError(Exception):
    """Systemd does not answer, and would not answer the next question either."""


@dataclass(frozen=True)
class Unit:
    """One unit; nothing is written before `start`.

    Attributes:
        folder: Of the node.
        tag: What marks the node's processes: CLUSTER/NAME.
        program: Holds `hybrid/node`.
        kind: `system` or `user`.
        place: Where units of that kind are.
    """

    folder: Path
    tag: str
    program: str
    kind: str
    place: Path

    @classmethod
    def of_system(cls, folder: Path, tag: str, program: str) -> Unit:
        """Return a unit of the machine; needs root."""
        return cls(folder, tag, program, "system", _SYSTEM)

    @classmethod
    def of_user(cls, folder: Path, tag: str, program: str) -> Unit:
        """Return a unit of this user, whose services live on without a login ("linger")."""
        return cls(folder, tag, program, "user", Path("~/.config/systemd/user").expanduser())

    @property
    def name(self) -> str:
        """Its name."""
        return f"hybrid-{self.tag.replace('/', '-')}.service"

    @property
    def text(self) -> str:
        """Its file."""
        main = f"{self.program}/hybrid/node/__main__.py"
        command = " ".join(map(_quoted, (sys.executable, "-P", main, "run", str(self.folder))))
        home = str(Path.home())
        # What a session over SSH has and a service has not; jobs are used to it.
        settings = {TAG: self.tag, "HOME": home, "PATH": os.environ.get("PATH", os.defpath)}
        environment = " ".join(_quoted(f"{key}={value}") for key, value in settings.items())
        return f"""\
[Unit]
Description=Ray node {self.tag.rpartition("/")[2]} of a hybrid cluster
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={command}
Environment={environment}
WorkingDirectory={home.replace("%", "%%")}
KillMode=mixed
TimeoutStopSec=20
LimitNOFILE=65536
TasksMax=infinity
OOMPolicy=continue

[Install]
WantedBy={"multi-user.target" if self.kind == "system" else "default.target"}
"""

    def start(self) -> bool:
        """Write it, have it started at each boot, and start it now; return whether it went."""
        try:
            if self.kind == "user" and not self._call("loginctl", "enable-linger"):
                return False
            self.place.mkdir(parents=True, exist_ok=True)
            (self.place / self.name).write_text(self.text)
            return (
                self._systemctl("daemon-reload")
                and self._systemctl("enable", self.name)
                and self._systemctl("restart", self.name)
            )
        except (OSError, _HangsError):
            return False

    def remove(self) -> None:
        """Stop it and take it away; nothing happens when it is not there."""
        if (self.place / self.name).exists():
            with suppress(_HangsError):
                self._remove()

    def _remove(self) -> None:
        try:
            self._systemctl("disable", "--now", self.name)
        finally:
            with suppress(OSError):
                (self.place / self.name).unlink(missing_ok=True)
        self._systemctl("daemon-reload")
        self._systemctl("reset-failed", self.name)

    def _systemctl(self, *words: str) -> bool:
        kind = ["--user"] if self.kind == "user" else []
        return self._call("systemctl", *kind, *words)

    def _call(self, *command: str) -> bool:
        runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "XDG_RUNTIME_DIR": runtime},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as err:
            raise _HangsError from err
        except OSError:
            return False
        return done.returncode == 0


def _quoted(word: str) -> str:
    """Return a word as systemd reads it: no expansion of `%` and `$`, spaces kept."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + plain.replace("%", "%%").replace("$", "$$") + '"'
