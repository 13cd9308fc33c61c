"""Which cluster `hybrid down` is about: a running one, or what a dead controller left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.cli import remains
from hybrid.cli.exits import ExitCode, StopError
from hybrid.client import discover
from hybrid.core.errors import ConfigError

if TYPE_CHECKING:
    from hybrid.client.discover import Record
    from hybrid.settings import Settings

_START_S = 60.0


@dataclass(frozen=True)
class Target:
    """The cluster to close.

    Attributes:
        record: Of its running controller; `None` when none runs.
        config: The configuration it was started with, when known.
        ledger_url: Where its ledger is, when not in the state folder.
        ledger_problem: Why its ledger cannot be used from here, or `""`.
        is_ledger_known: Whether its ledger can at least be looked at.
    """

    name: str
    state_dir: Path
    record: Record | None = None
    config: Path | None = None
    ledger_url: str | None = None
    ledger_problem: str = ""
    is_ledger_known: bool = True

    def left(self) -> list[str]:
        """Return a line for everything of it that is left."""
        if self.is_ledger_known:
            return remains.report(self.state_dir, ledger_url=self.ledger_url)
        nodes = [f"node {line}" for line in remains.live_nodes(self.state_dir)]
        nodes += [f"host {line}" for line in remains.hosts_elsewhere(self.state_dir)]
        return [*nodes, f"rented instances: unknown; {self.ledger_problem}"]

    def is_clean(self) -> bool:
        """Return whether nothing runs and nothing is left."""
        return not (self.record or remains.is_crashed(self.state_dir) or self.left())


def find(settings: Settings | None, name: str) -> Target | None:
    """Return the cluster that is meant; `None` when there is nothing to close anywhere.

    Args:
        settings: Those of a file, when one was given.
        name: A cluster, when one was named.

    Raises:
        StopError: There is no such cluster, or several could be meant.
        ConfigError: Several are running, or a configuration is broken.
    """
    if settings is not None:
        return of_settings(settings)
    name = name or discover.ENVIRONMENT.get("HYBRID_CLUSTER", "")
    if name:
        return _named(name)
    if (settings := _settings_here()) is not None:
        return _unless_another_runs(of_settings(settings), settings.source)
    if any(record.is_alive for record in discover.records()):
        return of_folder(discover.choose().state_dir)
    found = [target for folder in _folders() if not (target := of_folder(folder)).is_clean()]
    if len(found) > 1:
        names = ", ".join(target.state_dir.name for target in found)
        raise StopError(
            f"something is left of several clusters: {names}; choose one with --cluster NAME",
            ExitCode.USAGE,
        )
    return found[0] if found else None


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


def of_settings(settings: Settings) -> Target:
    """Return the cluster of a configuration. Raises `ConfigError` if its folder is not ours."""
    discover.is_state_dir(settings.state_path)
    record = discover.read_record(settings.state_path)
    return _with_ledger(
        Target(
            name=settings.name,
            state_dir=settings.state_path,
            record=record if record is not None and record.is_alive else None,
            config=settings.origin.file,
        ),
        settings,
    )


def of_folder(state_dir: Path) -> Target:
    """Return the cluster of a state folder. Raises `ConfigError` if it is not ours."""
    discover.is_state_dir(state_dir)
    record = discover.read_record(state_dir)
    name, alive, config = state_dir.name, None, remains.last_config(state_dir)
    if record is not None:
        name, alive = record.cluster, record if record.is_alive else None
        in_force = Path(record.config_path)
        if record.config_path and (in_force.exists() or config is None):
            config = in_force
    target = Target(name, state_dir, alive, config)
    try:
        settings = _load(config) if config is not None and config.exists() else None
    except ConfigError:  # whoever starts a controller with it will hear all about it
        settings = None
    return _with_ledger(target, settings)


def _with_ledger(target: Target, settings: Settings | None) -> Target:
    """Return `target` with the place of its ledger: where it was at the last start.

    A controller that closes takes it from the configuration and the environment of today. Where
    these name another ledger, it would find nothing in it and call that a clean end.
    """
    from dataclasses import replace

    here = ledger_of(settings) if settings is not None else None
    noted = remains.last_ledger(target.state_dir)
    if noted is None or noted == here:
        return replace(target, ledger_url=settings.controller.ledger_url if settings else None)
    place = noted or "in the state folder"
    told = "in the state folder" if here == "" else here or "unknown"
    return replace(
        target,
        ledger_url=noted or None,
        ledger_problem=(
            f"the ledger of {target.name} is {place}, but its configuration and this environment "
            f"say {told}; set HYBRID_LEDGER_URL (or controller.ledger) as for its `hybrid up`. If "
            f"that ledger is gone for good, remove {target.state_dir / remains.LEDGER_NAME}"
        )
        if here is not None or noted
        else "",
        is_ledger_known="***" not in noted,
    )


def ledger_of(settings: Settings) -> str:
    """Return where the ledger of a configuration is, without password; `""` in its folder."""
    from hybrid.settings.words import masked

    return masked(settings.controller.ledger_url or "")


def _is_starting(state_dir: Path) -> bool:
    """Return whether the process that took the state folder last still lives."""
    wanted = state_dir.resolve()
    try:
        pid = int((state_dir / "controller.lock").read_text())
        process = Path(f"/proc/{pid}")
        words = (process / "cmdline").read_bytes().decode("utf-8", "surrogateescape").split("\0")
        folder = (process / "cwd").readlink()
    except (OSError, ValueError):
        return False
    return any((folder / word).resolve() == wanted for word in words if word)


def _load(file: Path) -> Settings:
    from hybrid.cli.config import load

    return load(file)


def _settings_here() -> Settings | None:
    """Return the configuration that `hybrid up` would take here; `None` when it is the embedded."""
    from hybrid.cli.config import load
    from hybrid.settings.places import FILE_NAME

    if not (discover.ENVIRONMENT.get("HYBRID_CONFIG") or Path(FILE_NAME).exists()):
        return None
    try:
        return load(None)
    except ConfigError as error:
        raise StopError(
            f"{error}\nIt says which cluster is meant here; repair it, or name the cluster: "
            "`hybrid down -c NAME`",
            ExitCode.USAGE,
        ) from error


def _unless_another_runs(target: Target, source: str) -> Target:
    """Return `target`, which nobody named. Refused when it has ended and another one runs."""
    others = [r.cluster for r in discover.records() if r.is_alive and r.cluster != target.name]
    if others and target.record is None and target.is_clean():
        raise StopError(
            f"{source} is here, but its cluster {target.name} is not running; running: "
            f"{', '.join(others)}. Say which one: `hybrid down -c {others[0]}`",
            ExitCode.USAGE,
        )
    return target


def _named(name: str) -> Target:
    folder = discover.state_dir_of(name)
    if discover.is_state_dir(folder):
        return of_folder(folder)
    names = ", ".join(known.name for known in discover.state_dirs()) or "none"
    raise StopError(
        f"there is no cluster {name!r}: {folder} is not the state folder of one; known here "
        f"({discover.home()}): {names}"
    )


def _folders() -> Sequence[Path]:
    """Return the state folders of all clusters, each once."""
    return list({folder.resolve(): folder for folder in discover.state_dirs()}.values())
