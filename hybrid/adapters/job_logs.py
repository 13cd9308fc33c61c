"""The output of ended jobs, kept after their nodes and Ray have forgotten it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_KEPT_BYTES = 8 * 2**20
"""Of each job, from its end: enough to see why it failed, and bounded."""


class JobLogFolder:
    """See `hybrid.core.ports.JobLogs`: one file for each job."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, job_id: str, text: str) -> None:
        """See `JobLogs.put`."""
        content = text.encode(errors="replace")
        if len(content) > _KEPT_BYTES:
            cut = f"[the first {len(content) - _KEPT_BYTES} bytes are not kept]\n".encode()
            content = cut + content[-_KEPT_BYTES:]
        path = self._file(job_id)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
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

    def _file(self, job_id: str) -> Path:
        return self._path / f"{job_id.replace('/', '_')}.log"
