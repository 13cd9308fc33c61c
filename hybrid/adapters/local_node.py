"""A Ray node of our own on this machine: the head, or an on-prem host with `address: local`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hybrid.core.errors import FleetError
from hybrid.node import stopping
from hybrid.node.folder import BadFolderError, Folder, Phase
from hybrid.node.starting import StartError, start

_BROKEN = (Phase.FAILED, Phase.EXITED, Phase.STOPPED)


class LocalNode:
    """One node in a folder of its own; it outlives this process.

    Attributes:
        name: `head`, or the host's name; for messages.
    """

    def __init__(self, name: str, path: Path, orders: Mapping[str, object]) -> None:
        self.name = name
        self._folder = Folder(path)
        self._orders = orders

    @property
    def ports(self) -> Mapping[str, int]:
        """Ports that were chosen for it, at this start or the last."""
        return self._folder.ports()

    def start(self) -> None:
        """Start it unless it runs; what an earlier run left behind is ended first.

        Raises:
            FleetError: It did not start.
        """
        if self.phase() is not None:
            return
        self.stop()
        try:
            start(self._folder.path, self._orders)
        except StartError as err:
            raise FleetError(f"cannot start {self.name}: {err}") from err

    def stop(self) -> None:
        """End it and everything it started; nothing happens when nothing runs.

        Raises:
            FleetError: Something of it may still run.
        """
        try:
            left = stopping.stop(self._folder.path)
        except (BadFolderError, OSError) as err:
            raise FleetError(
                f"cannot end {self.name}: {err}. Look for processes with "
                f"{self._tag} in their environment and end them"
            ) from err
        if left:
            pids = ", ".join(f"{process.name} ({process.pid})" for process in left)
            raise FleetError(f"{self.name}: processes that would not end: {pids}")

    def phase(self) -> Phase | None:
        """Return what it is doing; `None` when it does not run, or no longer tries to."""
        if self._folder.supervisor() is None:
            return None
        status = self._folder.status()
        phase = status.phase if status else Phase.BOOTING
        return None if phase in _BROKEN else phase

    def problem(self) -> str:
        """Return why it does not run, although it was told to; `""` otherwise."""
        status = self._folder.status()
        if status is None or self.phase() is not None or self._folder.is_stop_ordered:
            return ""
        if status.phase in _BROKEN:
            return status.problem
        return f"its processes were killed; the log is {self._folder.path / 'node.log'}"

    def pids(self) -> tuple[int, ...]:
        """Return its main processes: the one that looks after it, and Ray's."""
        supervisor, status = self._folder.supervisor(), self._folder.status()
        if supervisor is None:
            return ()
        raylet_pid = status.raylet_pid if status else None
        return (supervisor.pid,) if raylet_pid is None else (supervisor.pid, raylet_pid)

    @property
    def _tag(self) -> str:
        return f"HYBRID_NODE_TAG={self._orders['cluster_id']}/{self._orders['id']}"
