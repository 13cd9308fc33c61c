"""One OpenSSH server with keys, a home folder and tools of its own.

Nothing of the machine's own SSH is read or written: no /etc/ssh, no ~/.ssh. It ends by its
process id, and by itself when the test run dies.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from hybrid.adapters.ssh_fleet import Destination, SshSettings
from tests.sshd.need import which

_WAIT_S = 20.0
_PORT = 22


class Keys:
    """The key of a client and what it knows of hosts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)
        self.key = make_key(folder / "id")
        self.known_hosts = folder / "known_hosts"
        self.config = folder / "config"
        self.config.write_text("")

    def settings(self, *options: str, connect_limit_s: float = 5.0) -> SshSettings:
        """Return how `ssh` is to be called with them."""
        ours = (
            f"IdentityFile={self.key}",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            f"UserKnownHostsFile={self.known_hosts}",
            "GlobalKnownHostsFile=none",
        )
        return SshSettings((*ours, *options), str(self.config), connect_limit_s)


class Server:
    """A server; several may stand for one machine after another at the same address.

    Attributes:
        home: Home folder of whoever logs in.
        tools: Comes first in the PATH of whoever logs in.
    """

    def __init__(
        self,
        keys: Keys,
        *,
        ip: str = "127.0.0.1",
        port: int = 0,
        inside: Sequence[str] = (),
        path: str = "",
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hs-", dir="/tmp"))
        self.home, self.tools = self.folder / "home", self.folder / "tools"
        for folder in (self.home, self.tools):
            folder.mkdir(mode=0o700)
        self.ip, self.port = ip, port or _free_port()
        self._keys = keys
        self._shell = inside
        self._path = path or os.environ["PATH"]
        self.host_key = make_key(self.folder / "host_key")
        self.process: subprocess.Popen[bytes] | None = None
        (self.folder / "authorized_keys").write_text(keys.key.with_suffix(".pub").read_text())

    @property
    def user(self) -> str:
        return pwd.getpwuid(os.getuid()).pw_name

    def to(self, python: str = "python3") -> Destination:
        return Destination(self.address, python)

    @property
    def address(self) -> str:
        return f"ssh://{self.user}@{self.ip}:{self.port}"

    def know(self) -> None:
        """Put the server's key on record."""
        kind, key, *_ = self.host_key.with_suffix(".pub").read_text().split()
        with self._keys.known_hosts.open("a") as file:
            where = self.ip if self.port == _PORT else f"[{self.ip}]:{self.port}"
            file.write(f"{where} {kind} {key}\n")

    def new_host_key(self) -> None:
        """Give it another key, as a new system has."""
        self.host_key.unlink()
        make_key(self.host_key)

    def tool(self, name: str, text: str) -> None:
        """Put a program into its PATH."""
        path = self.tools / name
        path.write_text(text)
        path.chmod(0o755)

    def start(self) -> None:
        sshd = which("sshd")
        assert sshd is not None
        config = self.folder / "config"
        config.write_text(self._config())
        command: list[str | Path] = [
            "setpriv",
            "--pdeathsig",
            "KILL",  # `unshare` heeds no other signal
            *self._shell,
            sshd,
            "-D",
            "-e",
            "-f",
            config,
        ]
        log = (self.folder / "log").open("ab")
        with log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._wait()

    def stop(self) -> None:
        """End the server and its connections, as a power cut does."""
        if self.process is None:
            return
        for pid in (*_children(self.process.pid), self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        self.process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _config(self) -> str:
        setting = f'HOME="{self.home}" PATH="{self.tools}:{self._path}"'
        return f"""\
Port {self.port}
ListenAddress {self.ip}
HostKey {self.host_key}
AuthorizedKeysFile {self.folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
LogLevel VERBOSE
SetEnv {setting}
"""

    def _wait(self) -> None:
        end_s = time.monotonic() + _WAIT_S
        while time.monotonic() < end_s:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "log").read_text()
            try:
                socket.create_connection((self.ip, self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError((self.folder / "log").read_text())


def make_key(path: Path) -> Path:
    """Make a key without a passphrase and return its path."""
    path.with_suffix(".pub").unlink(missing_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path], check=True
    )
    return path


def _children(pid: int) -> list[int]:
    from hybrid.node.processes import descendants

    # Sessions of users are in process groups of their own; what they left running goes on.
    return [process.pid for process in descendants([pid]) if process.name.startswith("sshd")]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
