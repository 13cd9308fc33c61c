"""Free ports for Ray, chosen so that two nodes of one user never choose the same."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_PLACE = re.compile(r"\{port:([a-z_]+)\}")


class NoPortError(Exception):
    """Every port of the range is taken."""


class PortChooser:
    """Chooses ports and keeps them from other choosers for as long as this process lives.

    Between the choice and Ray's own `bind` lie seconds. So each chosen port is also a locked
    byte (number = port) of one file; the kernel frees the locks however the process ends.
    Never open that file a second time in one process: closing it would free them too.
    """

    def __init__(self, lock_file: Path, ports: tuple[int, int]) -> None:
        self._ports = ports
        self._descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def choose(
        self, names: Sequence[str], *, before: Mapping[str, int], seed: str
    ) -> dict[str, int]:
        """Return a free port for each name.

        Args:
            names: What the ports are for.
            before: Ports of an earlier start, taken again where they are free.
            seed: Where to begin the search; nodes with different seeds seldom meet.

        Raises:
            NoPortError: The range is full.
        """
        chosen: dict[str, int] = {}
        for name in names:
            port = before.get(name, 0)
            if self._is_in_range(port) and port not in chosen.values() and self._take(port):
                chosen[name] = port
        fresh = self._fresh(seed)
        for name in names:
            if name not in chosen:
                chosen[name] = next(port for port in fresh if port not in chosen.values())
        return chosen

    def _fresh(self, seed: str) -> Iterator[int]:
        first, last = self._ports
        count = last - first + 1
        start = zlib.crc32(seed.encode()) % count
        for step in range(count):
            port = first + (start + step) % count
            if self._take(port):
                yield port
        raise NoPortError(f"no free port from {first} to {last}; end something or widen the range")

    def _is_in_range(self, port: int) -> bool:
        return self._ports[0] <= port <= self._ports[1]

    def _take(self, port: int) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
        return is_free(port)


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port now, on every address."""
    with socket.socket() as probe:
        # As servers do: connections that are still closing do not matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def places(command: Sequence[str]) -> list[str]:
    """Return the names of the `{port:NAME}` places of a command, in order, once each."""
    return list(dict.fromkeys(name for part in command for name in _PLACE.findall(part)))


def fill(command: Sequence[str], ports: Mapping[str, int]) -> list[str]:
    """Return the command with its places filled."""
    return [_PLACE.sub(lambda place: str(ports[place[1]]), part) for part in command]
