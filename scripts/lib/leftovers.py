"""Say what a cluster that was taken down left behind: open rows, processes, sockets. Exit 1 if any.

`python scripts/lib/leftovers.py STATE_DIR`
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

from hybrid.adapters.ledger import open_ledger, sqlite_url


def tagged_processes(state_dir: Path) -> list[int]:
    """Return processes that carry the tag of one of this cluster's nodes, or name its folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        is_node = b"HYBRID_NODE_TAG=" in environment and str(state_dir).encode() in command
        is_ours = b"hybrid.app" in command and str(state_dir).encode() in command
        if is_node or is_ours:
            found.append(int(entry.name))
    return found


def main() -> int:
    """Look, say what is left, and return 1 if anything is."""
    state_dir = Path(sys.argv[1]).resolve()
    ledger = open_ledger(sqlite_url(state_dir / "ledger.db"))
    rows = ledger.instances()
    states = Counter(row.state.value for row in rows)
    ledger.close()
    pids = tagged_processes(state_dir)
    words = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
    print(f"instances in the ledger: {words}")
    print(f"processes left: {', '.join(map(str, pids)) or 'none'}")
    return 1 if pids or any(not row.is_ended for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
