"""Who listens on a port: another program, or a cluster of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_SHOWN_CHARS = 60
_PROC = Path("/proc")


class Holder(NamedTuple):
    """The process that listens on a port.

    Attributes:
        program: What people know it by, such as `redis-server`.
        state_dir: State folder of the cluster it belongs to; `""` when it is none of ours.
    """

    pid: int
    program: str
    state_dir: str = ""

    @property
    def cluster(self) -> str:
        """Name of the cluster; `""` when it is none of ours."""
        return self.state_dir.rpartition("/")[2]

    def __str__(self) -> str:
        """Return it as it is named in a message."""
        if self.state_dir:
            return f"cluster {self.cluster} (its state folder is {self.state_dir})"
        return f"{self.program} (pid {self.pid})"


def holder(port: int) -> Holder | None:
    """Return who listens on the port.

    `None` when nobody does or it cannot be known, as for another user's process.
    """
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    if not sockets:
        return None
    for entry in sorted(_PROC.glob("[0-9]*"), key=lambda path: int(path.name)):
        if _holds(entry, sockets):
            return _holder(int(entry.name))
    return None


def _holder(pid: int) -> Holder:
    words = _words(pid)
    program = " ".join([words[0].rpartition("/")[2], *words[1:3]]) if words else "a process"
    if len(program) > _SHOWN_CHARS:
        program = f"{program[:_SHOWN_CHARS]}..."
    found = (_state_dir(_words(one)) for one in _with_parents(pid))
    return Holder(pid, program, next(filter(None, found), ""))


def _state_dir(words: Sequence[str]) -> str:
    """Return the state folder that a controller's or a node program's command line names."""
    if "hybrid.app" in words and "--state-dir" in words[:-1]:
        return words[words.index("--state-dir") + 1]
    if len(words) > 2 and any(word.endswith("hybrid/node/__main__.py") for word in words):
        for part in ("/nodes/", "/providers/"):
            if part in words[-1]:
                return words[-1].rpartition(part)[0]
    return ""


def _with_parents(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        try:
            stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
        except OSError:
            return
        pid = int(stat.rpartition(")")[2].split()[1])


def _words(pid: int) -> Sequence[str]:
    try:
        content = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ()
    return content.rstrip("\0").split("\0") if content else ()


def _listening(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = (_PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _holds(process: Path, sockets: set[str]) -> bool:
    try:
        return any(str(link.readlink()) in sockets for link in (process / "fd").iterdir())
    except OSError:
        return False
