"""What of a cluster is still there, whatever its controller says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hybrid.client import discover

_CONFIG_NAME = "last_config"


def report(state_dir: Path, *, ledger_url: str | None = None) -> list[str]:
    """Return a line for everything that is left; empty when nothing is.

    Args:
        state_dir: The cluster's state folder.
        ledger_url: Where its ledger is, when not in the state folder.
    """
    lines = [f"node {line}" for line in _live_nodes(state_dir)]
    rented = _rented(state_dir, ledger_url)
    if rented is None:
        return [*lines, "rented instances: unknown, the ledger cannot be read"]
    return [*lines, *(f"instance {line}" for line in rented)]


def is_crashed(state_dir: Path) -> bool:
    """Return whether a controller died here without cleaning up."""
    record = discover.read_record(state_dir)
    return record is not None and not record.is_alive


def remember_config(state_dir: Path, config: Path) -> None:
    """Note with which configuration a cluster was started, for a later `down`."""
    with suppress(OSError):  # `hybrid down FILE` works without it
        (state_dir / _CONFIG_NAME).write_text(f"{config}\n")


def last_config(state_dir: Path) -> Path | None:
    """Return the configuration a cluster was last started with, when it was noted."""
    try:
        text = (state_dir / _CONFIG_NAME).read_text().strip()
    except (OSError, ValueError):
        return None
    return Path(text) if text else None


def _node_folders(state_dir: Path) -> Iterator[Path]:
    """Yield the folders of all nodes that were ever started from a state folder."""
    for pattern in ("nodes/*/node.json", "providers/*/instances/*/node.json"):
        yield from sorted(path.parent for path in state_dir.glob(pattern))


def _live_nodes(state_dir: Path) -> list[str]:
    """Return a line for each node with a live process: its name and process ids."""
    from hybrid.node.folder import BadFolderError
    from hybrid.node.stopping import leftovers

    found = []
    for folder in _node_folders(state_dir):
        try:
            left = leftovers(folder)
        except BadFolderError as error:
            found.append(f"{folder.name}: unknown ({error})")
            continue
        if left:
            pids = ", ".join(str(process.pid) for process in left[:4])
            more = f" and {len(left) - 4} more" if len(left) > 4 else ""
            found.append(f"{folder.name}: process {pids}{more}")
    return found


def _rented(state_dir: Path, ledger_url: str | None) -> list[str] | None:
    """Return what the ledger holds as rented; `None` when that cannot be known here."""
    from hybrid.core.errors import HybridError

    path = state_dir / "ledger.db"
    if ledger_url is None and not path.exists():
        return []
    from hybrid.adapters.ledger import open_ledger, sqlite_url

    try:
        ledger = open_ledger(ledger_url or sqlite_url(path))
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
