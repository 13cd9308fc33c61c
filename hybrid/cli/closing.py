"""Which cluster `hybrid down` is about: a running one, or what a dead controller left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.cli import remains
from hybrid.cli.exits import ExitCode, StopError
from hybrid.client import discover

if TYPE_CHECKING:
    from hybrid.client.discover import Record

_START_S = 60.0


@dataclass(frozen=True)
class Target:
    """The cluster to close.

    Attributes:
        record: Of its running controller; `None` when none runs.
        config: The configuration it was started with, when known.
        ledger_url: Where its ledger is, when not in the state folder.
    """

    name: str
    state_dir: Path
    record: Record | None = None
    config: Path | None = None
    ledger_url: str | None = None

    def left(self) -> list[str]:
        """Return a line for everything of it that is left."""
        return remains.report(self.state_dir, ledger_url=self.ledger_url)

    def is_clean(self) -> bool:
        """Return whether nothing runs and nothing is left."""
        return not (self.record or remains.is_crashed(self.state_dir) or self.left())


def find(file: Path | None, name: str) -> Target | None:
    """Return the cluster that is meant; `None` when there is nothing to close anywhere.

    Args:
        file: A configuration, when one was given.
        name: A cluster, when one was named.

    Raises:
        ConfigError: Several could be meant.
    """
    if file is not None:
        return _of_file(file)
    name = name or discover.ENVIRONMENT.get("HYBRID_CLUSTER", "")
    if name:
        return _of_folder(discover.state_dir_of(name))
    known = discover.records()
    if any(record.is_alive for record in known):
        return _of_folder(discover.choose().state_dir)
    folders = [record.state_dir for record in known] or _with_remains()
    if len(folders) > 1:
        names = ", ".join(folder.name for folder in folders)
        raise StopError(
            f"something is left of several clusters: {names}; choose one with --cluster NAME",
            ExitCode.USAGE,
        )
    return _of_folder(folders[0]) if folders else None


def wait_for_start(state_dir: Path) -> Record | None:
    """Return the record of a controller that is starting; `None` when none is.

    Between its first moment and its record lie seconds, in which it has the state folder.
    """
    from hybrid.cli.controller import CLOCK, POLL_S

    end_s = CLOCK.monotonic_s() + _START_S
    while _is_starting(state_dir) and CLOCK.monotonic_s() < end_s:
        record = discover.read_record(state_dir)
        if record is not None and record.is_alive:
            return record
        CLOCK.sleep(POLL_S)
    return None


def _is_starting(state_dir: Path) -> bool:
    """Return whether the process that took the state folder last still lives."""
    try:
        pid = int((state_dir / "controller.lock").read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return False
    return bytes(state_dir) in words


def _of_file(file: Path) -> Target:
    from hybrid.cli.config import load

    settings = load(file)
    record = discover.read_record(settings.state_path)
    return Target(
        name=settings.name,
        state_dir=settings.state_path,
        record=record if record is not None and record.is_alive else None,
        config=settings.origin.file,
        ledger_url=settings.controller.ledger_url,
    )


def _of_folder(state_dir: Path) -> Target:
    record = discover.read_record(state_dir)
    config = remains.last_config(state_dir)
    if record is None:
        return Target(state_dir.name, state_dir, config=config)
    in_force = Path(record.config_path)
    if record.config_path and (in_force.exists() or config is None):
        config = in_force
    alive = record if record.is_alive else None
    return Target(record.cluster, state_dir, alive, config)


def _with_remains() -> Sequence[Path]:
    """Return state folders without a record in which something is left all the same."""
    try:
        folders = sorted(path for path in discover.home().iterdir() if path.is_dir())
    except OSError:
        return ()
    return [folder for folder in folders if remains.report(folder)]
