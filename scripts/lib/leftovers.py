"""Say what a cluster that was taken down left behind: rows, processes, Ray's folders, sockets.

Exit code 1 if anything is left, 2 if it cannot be told.

`python scripts/lib/leftovers.py STATE_DIR`
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

from hybrid.adapters.ledger import open_ledger, sqlite_url
from hybrid.cli.remains import node_folders, tagged
from hybrid.core.errors import HybridError
from hybrid.node.folder import BadFolderError, Folder


def cluster_ids(state_dir: Path, ledger_id: str) -> set[str]:
    """Return what the marks of this cluster's processes begin with.

    Raises:
        BadFolderError: A node's folder does not say how its processes are marked.
    """
    marks = {Folder(folder).tag().partition("/")[0] for folder in node_folders(state_dir)}
    return marks | {ledger_id}


def ray_folders(state_dir: Path) -> set[Path]:
    """Return where Ray kept its sessions and sockets: those of a cluster lie side by side."""
    orders = [Folder(folder).orders() for folder in node_folders(state_dir)]
    return {Path(each.temp_dir).parent for each in orders}


def live_processes(state_dir: Path, ids: set[str], folders: set[Path]) -> list[int]:
    """Return processes with a mark of this cluster, or with one of its folders among their words.

    Not every one of Ray's processes shows its mark: some write their title over it.
    """
    found = {pid for tag, pid in tagged() if tag.partition("/")[0] in ids}
    places = [os.fsencode(folder) for folder in (state_dir, *folders)]
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if any(place in words for place in places) and b"leftovers.py" not in words:
            found.add(int(entry.name))
    return sorted(found)


def open_sockets(folders: set[Path]) -> list[str]:
    """Return Unix sockets below these folders that a process still has open."""
    paths = [line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines()]
    return sorted({path for path in paths if any(f"{folder}/" in path for folder in folders)})


def main() -> int:
    """Look, say what is left, and return 1 if anything is."""
    state_dir = Path(sys.argv[1]).expanduser().resolve()
    if not (state_dir / "ledger.db").exists():
        print(f"{state_dir} has no ledger: no cluster was started there", file=sys.stderr)
        return 2
    try:
        ledger = open_ledger(sqlite_url(state_dir / "ledger.db"))
        rows, ledger_id = ledger.instances(), ledger.cluster_id
        is_open = bool(ledger.live_instances())
        ledger.close()
        ids, folders = cluster_ids(state_dir, ledger_id), ray_folders(state_dir)
    except (HybridError, BadFolderError) as error:
        print(f"what is left cannot be told: {error}", file=sys.stderr)
        return 2
    states = Counter(row.state.value for row in rows)
    pids = live_processes(state_dir, ids, folders)
    places = [*map(str, sorted(filter(Path.exists, folders))), *open_sockets(folders)]
    words = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
    print(f"instances in the ledger: {words}")
    print(f"processes left: {', '.join(map(str, pids)) or 'none'}")
    print(f"Ray's folders and sockets left: {', '.join(places) or 'none'}")
    return 1 if is_open or pids or places else 0


if __name__ == "__main__":
    sys.exit(main())
