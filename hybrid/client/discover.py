"""Finds running clusters through their state folders. Standard library only, and quick."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybrid.client.errors import NoClusterError
from hybrid.core.errors import ConfigError

# the client stands alone: it may not import hybrid.settings, and these are not settings
ENVIRONMENT: Mapping[str, str] = os.environ  # noqa: TID251

RECORD_NAME = "controller.json"
LOG_NAME = "controller.log"
TOKEN_NAME = "api_token"  # noqa: S105 - a file name
_MARKS = frozenset(
    (RECORD_NAME, LOG_NAME, TOKEN_NAME, "controller.lock", "ledger.db", "nodes", "providers")
)
"""What tells a state folder from any other; a controller leaves some of it behind."""


@dataclass(frozen=True)
class Record:
    """A controller's note about itself in its state folder.

    Attributes:
        is_alive: Its process exists. A record without one was left by a crash.
    """

    state_dir: Path
    cluster: str
    url: str
    pid: int
    config_path: str
    started_at_s: float
    is_alive: bool


@dataclass(frozen=True)
class Endpoint:
    """Where a controller listens, and what it wants to hear.

    Attributes:
        log_path: Its log, or `""` when only an address was given.
    """

    url: str
    token: str
    log_path: str = ""


def home(env: Mapping[str, str] = ENVIRONMENT) -> Path:
    """Return the folder of all state folders."""
    return Path(env.get("HYBRID_HOME") or "~/.hybrid").expanduser().absolute()


def state_dir_of(cluster: str, env: Mapping[str, str] = ENVIRONMENT) -> Path:
    """Return a cluster's state folder; a name with a slash is the folder itself."""
    if "/" in cluster:
        return Path(cluster).expanduser().absolute()
    return home(env) / cluster


def is_state_dir(path: Path) -> bool:
    """Return whether a cluster was ever started with this folder.

    Raises:
        ConfigError: It cannot be looked into.
    """
    return not _MARKS.isdisjoint(entry.name for entry in _entries(path))


def state_dirs(env: Mapping[str, str] = ENVIRONMENT) -> Sequence[Path]:
    """Return the state folders of all clusters of this user, by name.

    Raises:
        ConfigError: Their folder, or one of them, cannot be looked into.
    """
    return [folder for folder in _entries(home(env)) if is_state_dir(folder)]


def _entries(folder: Path) -> Sequence[Path]:
    """Return what is in a folder, by name; nothing when it is not one."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be looked into ({error.strerror}); run this as the user whose "
            "clusters are there, or set HYBRID_HOME to a folder of yours"
        ) from error


def read_record(state_dir: Path) -> Record | None:
    """Return the controller's record in a state folder, or `None` when there is none."""
    try:
        fields = json.loads((state_dir / RECORD_NAME).read_text())
        pid = int(fields["pid"])
        return Record(
            state_dir=state_dir,
            cluster=str(fields["cluster"]),
            url=str(fields["url"]),
            pid=pid,
            config_path=str(fields.get("config_path") or ""),
            started_at_s=float(fields.get("started_at_s") or 0.0),
            is_alive=is_alive(pid) and _is_same_process(pid, fields),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def records(env: Mapping[str, str] = ENVIRONMENT) -> Sequence[Record]:
    """Return the records of all clusters of this user, by name."""
    return [record for folder in state_dirs(env) if (record := read_record(folder)) is not None]


def find(
    address: str = "",
    token: str = "",
    cluster: str = "",
    *,
    env: Mapping[str, str] = ENVIRONMENT,
) -> Endpoint:
    """Return the controller to talk to.

    What is passed wins over `HYBRID_ADDRESS`, `HYBRID_TOKEN` and `HYBRID_CLUSTER`, and these
    over what the state folders say.

    Raises:
        NoClusterError: None is running, or not the named one.
        ConfigError: Several are running, or the token is missing.
    """
    token = token or env.get("HYBRID_TOKEN", "")
    address = address or ("" if cluster else env.get("HYBRID_ADDRESS", ""))
    if address:
        return _at_address(address, token, env)
    record = choose(cluster or env.get("HYBRID_CLUSTER", ""), env=env)
    return _of_record(record, token)


def choose(cluster: str = "", *, env: Mapping[str, str] = ENVIRONMENT) -> Record:
    """Return the record of the running cluster that is meant. Raises as `find`."""
    if cluster:
        record = read_record(state_dir_of(cluster, env))
        if record is not None and record.is_alive:
            return record
    known = records(env)
    running = [record for record in known if record.is_alive]
    if cluster:
        names = ", ".join(record.cluster for record in running) or "none"
        raise NoClusterError(
            f"cluster {cluster!r} is not running (running: {names}); start it with `hybrid up`"
        )
    if not running:
        raise NoClusterError(_nothing_runs(known))
    if len(running) > 1:
        names = ", ".join(record.cluster for record in running)
        raise ConfigError(
            f"several clusters are running: {names}; choose one with --cluster NAME, "
            "HYBRID_CLUSTER or Client(cluster=NAME)"
        )
    return running[0]


def url_of(address: str) -> str:
    """Return the URL that an address, such as `HYBRID_ADDRESS`, means."""
    return (address if "://" in address else f"http://{address}").rstrip("/")


def record_at(address: str, env: Mapping[str, str] = ENVIRONMENT) -> Record | None:
    """Return the running cluster of this user at an address, or `None` if it is not one."""
    url = url_of(address)
    return next((found for found in records(env) if found.is_alive and found.url == url), None)


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it exists, and is somebody else's
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] != "Z"


def _is_same_process(pid: int, fields: Mapping[str, object]) -> bool:
    """Return whether a process is the one that wrote the record, and not one with its number.

    After a restart of the machine small numbers are soon taken again.
    """
    wrote = {key: fields[key] for key in ("boot_id", "start_time") if key in fields}
    return not wrote or wrote == process_mark(pid)


def process_mark(pid: int) -> Mapping[str, object]:
    """Return what tells a process from others that get its number; empty when it is gone."""
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return {}
    return {"boot_id": boot_id, "start_time": int(stat.rpartition(")")[2].split()[19])}


def _nothing_runs(known: Sequence[Record]) -> str:
    text = "no hybrid cluster is running; start one with `hybrid up`"
    if known:
        names = ", ".join(record.cluster for record in known)
        text += f" (the controller of {names} died: `hybrid up` goes on, `hybrid down` cleans up)"
    return text


def _at_address(address: str, token: str, env: Mapping[str, str]) -> Endpoint:
    url = url_of(address)
    if token:
        return Endpoint(url=url, token=token)
    record = record_at(address, env)
    if record is not None:
        return _of_record(record, "")
    raise ConfigError(
        f"the address {url} was given without a token; set HYBRID_TOKEN to the content of "
        "the file api_token in that cluster's state folder"
    )


def _of_record(record: Record, token: str) -> Endpoint:
    return Endpoint(
        url=record.url,
        token=token or _read_token(record.state_dir),
        log_path=str(record.state_dir / LOG_NAME),
    )


def _read_token(state_dir: Path) -> str:
    path = state_dir / TOKEN_NAME
    try:
        token = path.read_text().strip()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: the API token cannot be read ({error}); run this as the user who "
            "started the cluster, or set HYBRID_TOKEN"
        ) from error
    if not token:
        raise ConfigError(f"{path}: the API token is empty; restart the controller")
    return token
