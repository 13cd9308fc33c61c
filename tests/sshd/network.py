"""Machines of our own, as far as SSH and Ray can tell: network namespaces on a bridge.

Each has process ids of its own too. Ray looks through /proc for "the" raylet of its machine, and
in /proc of all machines finds the head's, whose socket a host cannot see: an agent that wants to
connect then ends, and its raylet with it.

10.232.SLOT.0/24, where a slot belongs to one process for as long as it lives. What a process that
died left of its slot goes when the slot is taken again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.sshd.server import Keys, Server

_MARK = "hybs"
_FIRST, _LAST = 1, 250
_SSH_PORT = 22
# Where Ray has its files is the machine's own, and empty after a reboot.
_BOOT = """\
mount -t proc proc /proc; hostname "$1"; mkdir -p -m 700 "$2"; mount -t tmpfs -o mode=700 tmpfs "$2"
if [ -n "$3" ]; then
    mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system /run/sshd
    mkdir -p /etc/systemd/system; mount --bind "$3" /etc/systemd/system
fi
shift 3; exec "$@"
"""
_SYSTEMCTL = Path(__file__).with_name("systemctl.py")


class Network:
    """One slot, taken; `close` removes everything of it."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self.slot, self._lock = _take_slot()
        self.bridge = f"{_MARK}{self.slot}"
        self.address = f"10.232.{self.slot}.1"
        self.machines: list[Machine] = []
        self._clean()
        _ip("link", "add", self.bridge, "type", "bridge")
        _ip("addr", "add", f"{self.address}/24", "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")

    def machine(
        self,
        hostname: str = "",
        *,
        path: str = "",
        has_systemd: bool = False,
    ) -> Machine:
        """Return another machine with a running SSH server whose key is on record.

        Args:
            hostname: What it calls itself.
            path: PATH of whoever logs in, ours if empty.
            has_systemd: A stand-in for systemctl works there.
        """
        number = 10 + len(self.machines)
        made = Machine(self, number, hostname or f"m{number}", self._keys, path, has_systemd)
        self.machines.append(made)
        made.start()
        made.know()
        return made

    def close(self) -> None:
        for machine in self.machines:
            machine.power_off()
            machine.close()
        self._clean()
        self._lock.close()

    def _clean(self) -> None:
        for space in _spaces():
            if space.startswith(f"{self.bridge}-"):
                for pid in _pids_in(space):
                    _kill(pid)
                _ip("netns", "del", space)
        names = [name for _, name in socket.if_nameindex()]
        for name in names:
            if name == self.bridge or name.startswith(f"{self.bridge}v"):
                with contextlib.suppress(subprocess.CalledProcessError):
                    _ip("link", "del", name)


class Machine(Server):
    """A server in a network namespace, with an address and a host name of its own."""

    def __init__(
        self,
        network: Network,
        number: int,
        hostname: str,
        keys: Keys,
        path: str,
        has_systemd: bool,
    ) -> None:
        self.space = f"{network.bridge}-{number}"
        self._cable = f"{network.bridge}v{number}"
        ip = f"10.232.{network.slot}.{number}"
        _ip("netns", "add", self.space)
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        _ip("link", "set", self._cable, "master", network.bridge, "up")
        _ip("-n", self.space, "addr", "add", f"{ip}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", self.space, "link", "set", device, "up")
        _ip("-n", self.space, "route", "add", "default", "via", network.address)
        processes = ("unshare", "--pid", "--fork", "--kill-child")
        space = (*processes, "ip", "netns", "exec", self.space, "unshare", "--uts")
        super().__init__(keys, ip=ip, port=_SSH_PORT, path=path)
        self.units = self.folder / "units"
        self.units.mkdir()
        places = (f"/tmp/hybrid-{os.getuid()}", str(self.units) if has_systemd else "")
        self._shell = (*space, "sh", "-c", _BOOT, "sh", hostname, *places)
        if has_systemd:
            text = f'#!/bin/sh\nexec {sys.executable} {_SYSTEMCTL} {self.units} "$@"\n'
            self.tool("systemctl", text)

    def pids(self) -> list[int]:
        """Return its processes, by the ids that they have here."""
        return _pids_in(self.space)

    def own_pids(self) -> dict[int, int]:
        """Return its processes by the ids that they have there; the values are those here."""
        return {_own_pid(pid): pid for pid in self.pids()}

    def inside(self, *command: str) -> None:
        """Run a command in its network."""
        _ip("netns", "exec", self.space, *command)

    def mount(self, *words: str | Path) -> None:
        """Mount something there, until it reboots."""
        self._there("mount", *words)

    def file(self, path: str | Path) -> Path:
        """Return where one of its files can be read from here."""
        return Path(f"/proc/{self.pids()[-1]}/root{path}")

    def boot(self) -> None:
        """Start it, and with it what systemd was told to start at each boot."""
        self.start()
        self._there(self.tools / "systemctl", "boot")

    def _there(self, *words: str | Path) -> None:
        pid = str(self.pids()[0])
        subprocess.run(["nsenter", "-t", pid, "-n", "-m", "-u", "-p", *words], check=True)

    def power_off(self) -> None:
        """End all of its processes, as a power cut does."""
        self.stop()
        end_s = time.monotonic() + 10
        while (pids := self.pids()) and time.monotonic() < end_s:
            for pid in pids:
                _kill(pid)
            time.sleep(0.02)

    def cut(self) -> None:
        """Take it off the network; it does not notice by itself."""
        _ip("link", "set", self._cable, "down")

    def heal(self) -> None:
        """Put it back."""
        _ip("link", "set", self._cable, "up")


def _pids_in(space: str) -> list[int]:
    done = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


def _own_pid(pid: int) -> int:
    """Return the id that a process has in its innermost namespace; 0 when it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, numbers = line.partition(":")
            if name == "NSpid":
                return int(numbers.split()[-1])
    return 0


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _spaces() -> list[str]:
    folder = Path("/run/netns")
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _take_slot() -> tuple[int, socket.socket]:
    """Return a slot that no other process has, and what holds it: it leaves no file."""
    for slot in _slots():
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0hybrid-sshd-{slot}")
        except OSError:
            lock.close()
            continue
        return slot, lock
    raise RuntimeError("all networks of SSH servers are taken")


def _slots() -> Iterator[int]:
    count = _LAST - _FIRST + 1
    start = os.getpid() % count
    yield from (_FIRST + (start + number) % count for number in range(count))
