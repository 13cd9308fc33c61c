"""Which hosts may have a node of ours: written before the join, removed after the leave.

So a host that left the configuration, or was off during `down`, is not forgotten, and two hosts
of the configuration that are one machine are found out.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from hybrid.core.errors import FleetError
from hybrid.core.models import Model, Shape

FOLDER = "hosts"
"""Within the state folder."""


class Record(Model):
    """A host that may have a node of ours.

    Attributes:
        identity: What no other machine has, see `Facts.identity`.
        gpus: The GPUs that it gives to work.
        shape: Ray's resources of its node.
    """

    address: str
    python: str
    hostname: str
    identity: str
    gpus: tuple[str, ...]
    shape: Shape

    def clash(self, other: Record) -> str:
        """Return why two hosts cannot both join; `""` when they can."""
        if self.identity == other.identity:
            return f"the same machine ({other.hostname}, at {other.address})"
        shared = set(self.gpus) & set(other.gpus)
        return f"{len(shared)} of the same GPUs" if shared else ""


class Records:
    """One file for each host. May be used by several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def path(self, host: str) -> Path:
        """Return the file of a host."""
        return self._folder / f"{host}.json"

    def claim(self, host: str, record: Record) -> tuple[str, str] | None:
        """Note that a host is about to join, unless another one has its machine or GPUs.

        Returns:
            That other one and what they share; `None` when it is noted.

        Raises:
            FleetError: It cannot be noted.
        """
        with self._lock:
            for name, other in self._read().items():
                if name != host and (shared := record.clash(other)):
                    return name, shared
            self._write(self.path(host), record)
            return None

    def remove(self, host: str) -> None:
        """Note that nothing of ours is on a host any more. Raises `FleetError`."""
        try:
            self.path(host).unlink(missing_ok=True)
        except OSError as err:
            raise FleetError(f"cannot note that host {host} has left: {err}") from err

    def read(self) -> Mapping[str, Record]:
        """Return the hosts that may have a node of ours. Raises `FleetError`."""
        with self._lock:
            return self._read()

    def _read(self) -> dict[str, Record]:
        found = {}
        for path in sorted(self._folder.glob("*.json")):
            try:
                found[path.stem] = Record.model_validate_json(path.read_bytes())
            except (OSError, ValidationError) as err:
                raise FleetError(
                    f"cannot tell whether host {path.stem} has joined: {path} is damaged. See "
                    f"whether a node of this cluster runs there; then remove that file"
                ) from err
        return found

    def _write(self, path: Path, record: Record) -> None:
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.write_text(record.model_dump_json())
            draft.replace(path)
        except OSError as err:
            raise FleetError(
                f"cannot note that host {path.stem} joins: {err}. Make room, or give this user "
                f"write access to {self._folder}"
            ) from err
