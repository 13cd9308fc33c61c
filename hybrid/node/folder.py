"""The folder of a node: its orders, its state, and who looks after it.

node.json     what to run (written by the caller, never changed here)
stop          exists: this node must end, and must not start again
notice        when the cloud takes the machine back (see `hybrid.node.notice`)
node.lock     held for as long as the node's own program lives
pid.json      that program's process
status.json   what it is doing
ports.json    ports chosen for the `{port:...}` places of the command
node.log      what happened; start.log, drain.log, check.log: what `ray start`, `ray drain-node`
              and the last command that looked at this machine said
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from hybrid.node.orders import Orders, parse
from hybrid.node.processes import Process, boot_id, find


class BadFolderError(Exception):
    """The folder or its node.json cannot be used; the message says why."""


class Phase(StrEnum):
    """What a node is doing."""

    BOOTING = "booting"
    CHECKING = "checking"
    INSTALLING = "installing"
    JOINING = "joining"
    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Status:
    """The content of status.json.

    Attributes:
        problem: Why it cannot work, with the last words of Ray; `""` when all is well.
        raylet_pid: Ray's own process of this node, when it runs.
    """

    phase: Phase
    problem: str = ""
    at_s: float = 0.0
    raylet_pid: int | None = None


class Folder:
    """Access to a node's folder; see the module for its files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def orders(self) -> Orders:
        """Read node.json.

        Raises:
            BadFolderError: It is missing or wrong.
        """
        path = self.path / "node.json"
        content = _read_json(path)
        try:
            return parse(content)
        except ValueError as err:
            raise BadFolderError(f"{path}: {err}") from err

    @property
    def notice_file(self) -> Path:
        """Where the cloud's word is that it takes the machine back."""
        return self.path / "notice"

    def lock(self, name: str = "node.lock") -> int:
        """Take a lock for this process and those it forks; returns its descriptor.

        Raises:
            BlockingIOError: Another process has it.
            BadFolderError: The folder cannot be written.
        """
        try:
            descriptor = os.open(self.path / name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as err:
            raise BadFolderError(f"cannot lock {self.path}: {err}") from err
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        return descriptor

    @property
    def is_stop_ordered(self) -> bool:
        """Whether this node must end."""
        return (self.path / "stop").exists()

    def order_stop(self) -> None:
        """Say that this node must end and stay ended, whoever reads it."""
        (self.path / "stop").touch(mode=0o600)

    def take_back_stop(self) -> None:
        """Allow the node to start again."""
        (self.path / "stop").unlink(missing_ok=True)

    def write_supervisor(self, process: Process, tag: str) -> None:
        """Say which process looks after the node."""
        content = {"pid": process.pid, "start_time": process.start_time}
        write_json(self.path / "pid.json", content | {"boot_id": boot_id(), "tag": tag})

    def supervisor(self) -> Process | None:
        """Return the process that looks after the node, if it lives."""
        try:
            content = _read_json(self.path / "pid.json")
        except BadFolderError:
            return None
        if content.get("boot_id", "") != boot_id():
            return None
        pid = content.get("pid")
        process = find(pid) if isinstance(pid, int) else None
        if process is None or process.start_time != content.get("start_time"):
            return None
        return process

    def tag(self) -> str:
        """Return the mark of the node's processes, also when node.json is damaged.

        Raises:
            BadFolderError: Neither file says it.
        """
        try:
            return self.orders().tag
        except BadFolderError as err:
            try:
                return str(_read_json(self.path / "pid.json")["tag"])
            except (BadFolderError, KeyError):
                raise err from None

    def write_status(self, status: Status) -> None:
        """Replace status.json. Raises `OSError`, such as for a full disk."""
        write_json(self.path / "status.json", asdict(status))

    def status(self) -> Status | None:
        """Return what the node last said; `None` when it said nothing readable."""
        try:
            content = _read_json(self.path / "status.json")
            at_s, raylet_pid = content.get("at_s"), content.get("raylet_pid")
            return Status(
                phase=Phase(str(content.get("phase"))),
                problem=str(content.get("problem") or ""),
                at_s=float(at_s) if isinstance(at_s, int | float) else 0.0,
                raylet_pid=raylet_pid if isinstance(raylet_pid, int) else None,
            )
        except (BadFolderError, ValueError):
            return None

    def write_ports(self, ports: Mapping[str, int]) -> None:
        """Remember the chosen ports. Raises `OSError`."""
        write_json(self.path / "ports.json", dict(ports))

    def ports(self) -> dict[str, int]:
        """Return the ports of the last start; empty when there are none."""
        try:
            content = _read_json(self.path / "ports.json")
        except BadFolderError:
            return {}
        return {name: port for name, port in content.items() if isinstance(port, int)}


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Replace a file in one step, so that nobody reads half of it. Raises `OSError`."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(content))
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _read_json(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_bytes())
    except OSError as err:
        raise BadFolderError(f"cannot read {path}: {err.strerror}") from err
    except ValueError as err:
        raise BadFolderError(f"{path} is not JSON: {err}") from err
    if not isinstance(content, dict):
        raise BadFolderError(f"{path} does not hold a JSON object")
    return content
