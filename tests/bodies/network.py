"""A network of our own on this machine: a bridge that bodies hang on, 10.231.SLOT.0/24.

A slot belongs to one process for as long as it lives. What a process that died left of its slot
(the bridge and a folder; namespaces and their cables die with their last process) goes when the
next network is made.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

FIRST, LAST = 1, 250
_MARK = "hybx"


class Network:
    """One slot, taken.

    Attributes:
        slot: Its number.
        folder: For the files of its bodies.
        address: This machine on the bridge: where bodies reach it.
    """

    def __init__(self) -> None:
        self.slot, self._lock = _take_slot()
        self.bridge = f"{_MARK}{self.slot}"
        self.folder = _folder(self.slot)
        self.address = f"10.231.{self.slot}.1"
        self._count = 0
        for slot in _used_slots():
            with contextlib.suppress(OSError):  # it belongs to a process that lives
                _lock(slot).close()
                _clean(slot)
        _clean(self.slot)
        self.folder.mkdir(mode=0o755)
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{self.address}/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")

    def next_number(self) -> int:
        """Return the number of another body: the last part of its address."""
        self._count += 1
        return 10 + self._count

    def address_of(self, number: int) -> str:
        """Return the address of a body."""
        return f"10.231.{self.slot}.{number}"

    def plug(self, number: int, pid: int) -> None:
        """Give the network namespace of a process an `eth0` that hangs on the bridge."""
        cable = self.cable(number)
        ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        ip("link", "set", cable, "master", self.bridge, "up")

    def cable(self, number: int) -> str:
        """Return the name of a body's cable at this end."""
        return f"{self.bridge}v{number}"

    def cut(self, number: int) -> None:
        """Take a body off the network; it does not notice by itself."""
        ip("link", "set", self.cable(number), "down")

    def heal(self, number: int) -> None:
        """Put it back."""
        ip("link", "set", self.cable(number), "up")

    def links(self) -> list[str]:
        """Return the network devices of this slot that this machine still has."""
        return _links(self.slot)

    def cables(self) -> list[str]:
        """Return the cables that are plugged in."""
        return [name for name in self.links() if name != self.bridge]

    def close(self) -> None:
        """Remove all of it and give the slot back."""
        _clean(self.slot)
        self._lock.close()


def ip(*words: str) -> None:
    """Run `ip WORDS`. Raises `CalledProcessError`."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _take_slot() -> tuple[int, socket.socket]:
    """Return a slot that no other process has, and what holds it."""
    for slot in _slots():
        with contextlib.suppress(OSError):
            return slot, _lock(slot)
    raise RuntimeError("all networks of bodies are taken")


def _slots() -> Iterator[int]:
    # Not always the same, so that a dead cluster's nodes do not find a new head at the old place.
    count = LAST - FIRST + 1
    start = os.getpid() % count
    yield from (FIRST + (start + number) % count for number in range(count))


def _lock(slot: int) -> socket.socket:
    """Take a slot. It leaves no file. Raises `OSError` when another process has it."""
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(f"\0hybrid-bodies-{slot}")
    except OSError:
        lock.close()
        raise
    return lock


def _folder(slot: int) -> Path:
    return Path(f"/tmp/hybrid-bodies-{slot}")


def _used_slots() -> set[int]:
    """Return the slots of which this machine has anything."""
    bridges = (re.fullmatch(rf"{_MARK}([0-9]+)", name) for _, name in socket.if_nameindex())
    folders = (
        re.fullmatch(r"hybrid-bodies-([0-9]+)", path.name) for path in Path("/tmp").iterdir()
    )
    return {int(found[1]) for found in (*bridges, *folders) if found is not None}


def _links(slot: int) -> list[str]:
    bridge = f"{_MARK}{slot}"
    names = [name for _, name in socket.if_nameindex()]
    return [name for name in names if name == bridge or name.startswith(f"{bridge}v")]


def _clean(slot: int) -> None:
    for name in _links(slot):
        with contextlib.suppress(subprocess.CalledProcessError):  # it went by itself
            ip("link", "del", name)
    shutil.rmtree(_folder(slot), ignore_errors=True)
