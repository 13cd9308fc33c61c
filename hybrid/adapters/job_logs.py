"""The output of ended jobs, kept after their nodes and Ray have forgotten it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from hybrid.core.ports import LogEnd

KEPT_BYTES = 2**30
"""Of all jobs together: the ledger may be on the same disk."""

_BLOCK_BYTES = 4096  # what the smallest file takes


class JobLogFolder:
    """See `hybrid.core.ports.JobLogs`: one file for each job.

    One thread writes. When all files together pass `kept_bytes`, the jobs that ended first lose
    theirs.
    """

    def __init__(self, path: Path, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._path = path
        self._kept_bytes = kept_bytes
        self._sizes: dict[str, int] | None = None  # by file name, in the order of the ends

    def put(self, job_id: str, end: LogEnd) -> None:
        """See `JobLogs.put`."""
        skipped = f"[the first {end.skipped_bytes} bytes are not kept]\n"
        content = ((skipped if end.skipped_bytes else "") + end.text).encode(errors="replace")
        path = self._file(job_id)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room(path.name, len(content))
            draft.write_bytes(content)
            draft.replace(path)
        except OSError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)  # a full disk loses a log, never a job

    def get(self, job_id: str) -> str | None:
        """See `JobLogs.get`."""
        try:
            return self._file(job_id).read_text(errors="replace")
        except OSError:
            return None

    def _make_room(self, name: str, size: int) -> None:
        if self._sizes is None:
            self._sizes = _look(self._path)
        self._sizes.pop(name, None)
        self._sizes[name] = max(size, _BLOCK_BYTES)
        over_bytes = sum(self._sizes.values()) - self._kept_bytes
        for oldest in list(self._sizes)[:-1]:
            if over_bytes <= 0:
                return
            (self._path / oldest).unlink(missing_ok=True)
            over_bytes -= self._sizes.pop(oldest)

    def _file(self, job_id: str) -> Path:
        return self._path / f"{job_id.replace('/', '_')}.log"


def _look(folder: Path) -> dict[str, int]:
    """Return the size of each log by its name, the oldest first; drafts of a crash are removed."""
    found: list[tuple[float, str, int]] = []
    for path in folder.iterdir():
        if path.name.startswith("."):
            path.unlink(missing_ok=True)
            continue
        stat = path.stat()
        found.append((stat.st_mtime, path.name, max(stat.st_size, _BLOCK_BYTES)))
    return {name: size for _, name, size in sorted(found)}
