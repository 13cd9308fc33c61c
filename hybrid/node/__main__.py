"""`python -m hybrid.node start|run|stop|alive DIR`; see `hybrid.node.folder` for DIR.

    start  look after the node in a process of its own; returns when that has begun
    run    the same in this process; returns when the node has ended
    stop   end the node, whatever state it is in; `--grace-s 5` for its own program, or
           `--detach` to return at once while a process of its own does the work
    alive  exit code 0 when the program that looks after the node lives, else 1

Exit codes: 0 done, 1 failed (stop: something is left), 2 bad folder or command line,
3 the node is running already, 4 the node was told to stop.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__" and not __package__:
    # Run by its file name: the way that needs no installed package and no PYTHONPATH, which
    # Ray's processes would inherit.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hybrid.node import guardian, stopping
from hybrid.node.folder import BadFolderError, Folder


def main(words: list[str]) -> int:
    """Run one command and return its exit code."""
    match words:
        case ["start", path]:
            return guardian.start(Folder(Path(path).absolute()))
        case ["run", path]:
            return guardian.run(Folder(Path(path).absolute()))
        case ["alive", path]:
            return 0 if stopping.is_alive(Path(path)) else 1
        case ["stop", path] | ["stop", path, "--grace-s", _]:
            return _stop(Path(path).absolute(), words[3] if len(words) > 3 else "")
        case ["stop", path, "--detach"]:
            return guardian.stop_detached(Folder(Path(path).absolute()))
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2


def _stop(path: Path, grace: str) -> int:
    try:
        grace_s = float(grace) if grace else stopping.GRACE_S
        left = stopping.stop(path, grace_s=grace_s)
    except (BadFolderError, ValueError) as err:
        sys.stderr.write(f"{err}\n")
        return 2
    for process in left:
        sys.stderr.write(f"still runs: {process.name} (pid {process.pid})\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
