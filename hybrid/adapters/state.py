"""The state folder of one cluster: its lock, its secrets, and where its controller listens."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from hybrid.core.errors import ConfigError, HybridError

_PORT_TRIES = 20
"""A port that is free on one address may be taken on another."""


class AlreadyRunningError(HybridError):
    """Another controller holds this cluster's state folder."""


class StateFolder:
    """A folder that one controller owns at a time.

    The lock is the kernel's: it goes away with the process, however that ends, so a stale lock
    cannot exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    def open(self) -> None:
        """Make the folder and take its lock for the life of this process.

        Raises:
            ConfigError: The folder cannot be made or written.
            AlreadyRunningError: Another controller has it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.chmod(0o700)
            lock = (self.path / "controller.lock").open("a+")
        except OSError as error:
            raise ConfigError(
                f"the state folder {self.path} cannot be used: {error.strerror}. Give this user "
                f"write access to it, or set state_dir (or HYBRID_HOME) to another folder"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            pid = lock.read().strip() or "unknown"
            lock.close()
            raise AlreadyRunningError(
                f"a controller of this cluster runs already (pid {pid}, folder {self.path}). "
                f"See `hybrid status`; end it with `hybrid down`"
            ) from error
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def close(self) -> None:
        """Give the lock back; ending the process does the same."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def secret(self, name: str) -> str:
        """Return the secret of that name, 64 hex digits; made on first use, readable by us only."""
        path = self.path / name
        try:
            found = path.read_text().strip()
        except FileNotFoundError:
            found = ""
        if not found:
            found = secrets.token_hex(32)
            self._write(path, found)
        return found

    @property
    def cluster_id(self) -> str:
        """The cluster's id as it was kept here, `""` at the first start.

        It stands in the tags of all that is rented, so it must outlive a lost ledger.
        """
        try:
            return (self.path / "cluster_id").read_text().strip()
        except FileNotFoundError:
            return ""

    def keep_cluster_id(self, cluster_id: str) -> None:
        """Keep the cluster's id."""
        if self.cluster_id != cluster_id:
            self._write(self.path / "cluster_id", cluster_id)

    def remembered_port(self, host: str, *others: str) -> int:
        """Return a free port, the same as last time if it is still free.

        Args:
            host: Where it must be free.
            others: Where else; `""` is nowhere.

        Raises:
            ConfigError: No port is free on all of them.
        """
        path = self.path / "api_port"
        hosts = [host, *filter(None, others)]
        for wanted in (self._read_port(path), *[0] * _PORT_TRIES):
            port = _free_port(hosts, wanted)
            if port:
                self._write(path, str(port))
                return port
        raise ConfigError(
            f"no port is free on {' and '.join(hosts)}; set controller.port, and check that "
            f"controller.host and head.address are addresses of this machine"
        )

    def _read_port(self, path: Path) -> int:
        try:
            return int(path.read_text())
        except (OSError, ValueError):
            return 0

    def publish(self, facts: Mapping[str, object]) -> None:
        """Say where the controller listens; the command line reads it."""
        self._write(self.path / "controller.json", json.dumps(facts, indent=1))

    def unpublish(self) -> None:
        """Take back `publish`."""
        (self.path / "controller.json").unlink(missing_ok=True)

    def _write(self, path: Path, text: str) -> None:
        # Whole or not at all, and never readable by others, not even for a moment.
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(fd, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise ConfigError(
                f"{path} cannot be written: {error.strerror}. Make room, or give this user "
                f"write access to {self.path}"
            ) from error


def _free_port(hosts: Sequence[str], wanted: int) -> int:
    """Return `wanted` (0: any), if it can be listened on everywhere, or 0."""
    port = wanted
    for host in hosts:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                return 0
            port = int(probe.getsockname()[1])
    return port
