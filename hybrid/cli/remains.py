"""What of a cluster is still there, whatever its controller says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from hybrid.client import discover

_CONFIG_NAME = "last_config"
LEDGER_NAME = "last_ledger"
_SETTINGS_NAME = "last_settings.json"


def report(state_dir: Path, *, ledger_url: str | None = None) -> list[str]:
    """Return a line for everything that is left; empty when nothing is.

    Args:
        state_dir: The cluster's state folder.
        ledger_url: Where its ledger is, when not in the state folder.
    """
    lines = [f"node {line}" for line in live_nodes(state_dir)]
    lines += [f"host {line}" for line in hosts_elsewhere(state_dir)]
    rented = _rented(state_dir, ledger_url)
    if rented is None:
        return [*lines, "rented instances: unknown, the ledger cannot be read"]
    return [*lines, *(f"instance {line}" for line in rented)]


def is_crashed(state_dir: Path) -> bool:
    """Return whether a controller died here without cleaning up."""
    record = discover.read_record(state_dir)
    return record is not None and not record.is_alive


def remember(
    state_dir: Path, config: Path, ledger: str, values: Mapping[str, object] | None = None
) -> None:
    """Note with what a cluster was started, for a later `down`, or `up` after a crash.

    Args:
        state_dir: The cluster's state folder.
        config: Its configuration.
        ledger: Where its ledger is, without a password; `""` for the state folder.
        values: What the configuration says, secrets masked.
    """
    with suppress(OSError):  # `hybrid down FILE` works without it
        (state_dir / _CONFIG_NAME).write_text(f"{config}\n")
        (state_dir / LEDGER_NAME).write_text(f"{ledger}\n")
        (state_dir / _SETTINGS_NAME).write_text(json.dumps(values or {}))


def note_ledger(state_dir: Path, ledger: str | None) -> None:
    """Note where a cluster's ledger is; `None`: nothing of a ledger elsewhere is ours any more."""
    path = state_dir / LEDGER_NAME
    with suppress(OSError):
        if ledger is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(f"{ledger}\n")


def last_config(state_dir: Path) -> Path | None:
    """Return the configuration a cluster was last started with, when it was noted."""
    text = _noted(state_dir / _CONFIG_NAME)
    return Path(text) if text else None


def last_ledger(state_dir: Path) -> str | None:
    """Return where a cluster's ledger was at its last start; `None` when it was not noted."""
    return _noted(state_dir / LEDGER_NAME)


def last_values(state_dir: Path) -> Mapping[str, object]:
    """Return what the configuration said at the last start; empty when it was not noted."""
    try:
        found = json.loads(_noted(state_dir / _SETTINGS_NAME) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _noted(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return None


def node_folders(state_dir: Path) -> Iterator[Path]:
    """Yield the folders of all nodes that were ever started from a state folder."""
    for pattern in ("nodes/*/node.json", "providers/*/instances/*/node.json"):
        yield from sorted(path.parent for path in state_dir.glob(pattern))


def live_nodes(state_dir: Path) -> list[str]:
    """Return a line for each node of a cluster with a live process on this machine."""
    from hybrid.node.folder import BadFolderError, Folder

    name_by_tag: dict[str, str] = {}
    unknown = []
    for folder in node_folders(state_dir):
        try:
            name_by_tag[Folder(folder).tag()] = folder.name
        except BadFolderError as error:
            unknown.append(f"{folder.name}: unknown ({error})")
    if not name_by_tag:
        return unknown
    pids_by_name: dict[str, list[int]] = {}
    for tag, pid in tagged():
        if tag in name_by_tag:
            pids_by_name.setdefault(name_by_tag[tag], []).append(pid)
    return unknown + [_node_line(name, pids) for name, pids in sorted(pids_by_name.items())]


def hosts_elsewhere(state_dir: Path) -> list[str]:
    """Return a line for each host over SSH that may still have a node of a cluster."""
    from hybrid.adapters.ssh_fleet.records import FOLDER, Records
    from hybrid.core.errors import HybridError

    records = Records(state_dir / FOLDER)
    try:
        found = records.read()
    except (HybridError, OSError) as error:
        return [f"unknown ({error})"]
    return [
        f"{name} at {record.address} may still run its node; if that machine is gone for good, "
        f"remove {records.path(name)}"
        for name, record in found.items()
    ]


def tagged() -> Iterator[tuple[str, int]]:
    """Yield every process that belongs to a node, of whatever cluster, with its mark."""
    from hybrid.node.environment import TAG
    from hybrid.node.processes import environment, find_all

    mark = f"{TAG}=".encode()
    for pid in find_all():
        for setting in environment(pid):
            if setting.startswith(mark):
                yield setting[len(mark) :].decode("utf-8", "replace"), pid


def _node_line(name: str, pids: list[int]) -> str:
    shown = ", ".join(str(pid) for pid in sorted(pids)[:4])
    more = f" and {len(pids) - 4} more" if len(pids) > 4 else ""
    return f"{name}: process {shown}{more}"


def _rented(state_dir: Path, ledger_url: str | None) -> list[str] | None:
    """Return what the ledger holds as rented; `None` when that cannot be known here."""
    from hybrid.core.errors import HybridError

    try:
        if ledger_url is None and not (state_dir / "ledger.db").exists():
            return []
    except OSError:  # the folder of another user
        return None
    from hybrid.adapters.ledger import open_ledger, sqlite_url

    url = ledger_url or sqlite_url(state_dir / "ledger.db")
    if _is_missing_file(url):  # opening it would make it
        return []
    try:
        ledger = open_ledger(url)
    except HybridError:
        return None
    try:
        return [
            f"{instance.instance_id} ({instance.offer.instance_type}), {instance.state.value}"
            for instance in ledger.live_instances()
        ]
    except HybridError:
        return None
    finally:
        ledger.close()


def _is_missing_file(url: str) -> bool:
    """Return whether a ledger is a file of this machine that was never made."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except ArgumentError:
        return False
    is_file = parsed.get_backend_name() == "sqlite"
    return is_file and not Path(parsed.database or "/").exists()
