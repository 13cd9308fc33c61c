"""Ray Jobs on a cluster whose nodes share one machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hybrid.adapters.ray import RayJobs
from hybrid.adapters.text_files import GrowingFile, end_of, pieces_of
from hybrid.core.errors import JobError
from hybrid.core.ports import Clock, LogEnd

_POLL_S = 0.3


class LocalJobs(RayJobs):
    """See `hybrid.core.ports.JobRunner`; logs are read from the nodes' own folders.

    Ray tells nodes apart by their address. Here all have one, so Ray's agents look for a driver's
    log in the head's folder although the driver ran on another node (measured on Ray 2.60).
    """

    def __init__(
        self, dashboard_url: str, token: str, *, address: str, ray_dir: Path, clock: Clock
    ) -> None:
        """Remember where things are; see `RayJobs`.

        Args:
            dashboard_url: Ray's dashboard.
            token: Ray's token.
            address: `host:port` of the GCS.
            ray_dir: Folder that holds the Ray folder of every node.
            clock: Time.
        """
        super().__init__(dashboard_url, token, address=address)
        self._ray_dir = ray_dir
        self._clock = clock

    def logs(self, job_id: str) -> Iterator[str]:
        """See `JobRunner.logs`."""
        is_empty = True
        for path in self._files(job_id):
            for piece in pieces_of(path):
                is_empty = False
                yield piece
        if is_empty:
            yield from super().logs(job_id)

    def log_end(self, job_id: str, *, limit_bytes: int) -> LogEnd:
        """See `JobRunner.log_end`."""
        end = end_of(self._files(job_id), limit_bytes)
        return end if end.text else super().log_end(job_id, limit_bytes=limit_bytes)

    def follow_logs(self, job_id: str) -> Iterator[str]:
        """See `JobRunner.follow_logs`."""
        files: dict[Path, GrowingFile] = {}
        while True:
            # The state before the files: what is written later belongs to a job that runs.
            is_ended = self._is_ended(job_id)
            is_silent = True
            for path in self._files(job_id):
                for piece in files.setdefault(path, GrowingFile(path)).fresh(is_last=is_ended):
                    is_silent = False
                    yield piece
            if is_ended:
                return
            if is_silent:
                yield ""  # lets a reader that has gone away end this
            self._clock.sleep(_POLL_S)

    def _is_ended(self, job_id: str) -> bool:
        status = self.statuses().get(job_id)
        if status is None:
            raise JobError(f"Ray does not know job {job_id}")
        return status.state.is_ended

    def _files(self, job_id: str) -> list[Path]:
        """Return where the job's log may be: the head's first, where Ray notes what it prepares.

        Nodes come and go meanwhile, with their folders.
        """
        name = f"job-driver-{job_id}.log"
        return [
            Path(session) / "logs" / name
            for node in sorted(_folders(self._ray_dir), key=lambda n: (n.name != "head", n.name))
            for session in sorted(s.path for s in _folders(node) if s.name.startswith("session_"))
        ]


def _folders(path: os.PathLike[str]) -> list[os.DirEntry[str]]:
    """Return the folders in a folder, links left out; none when it is gone."""
    try:
        with os.scandir(path) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
