"""Ray Jobs on a cluster of which many nodes share this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from hybrid.adapters.ray import RayJobs
from hybrid.adapters.text_files import GrowingFile, end_of, pieces_of
from hybrid.core.errors import JobError
from hybrid.core.ports import Clock, LogEnd

_POLL_S = 0.3
_LOOPBACK = "127.0.0.1"


class LocalJobs(RayJobs):
    """See `hybrid.core.ports.JobRunner`; logs of this machine are read from the nodes' folders.

    Ray tells nodes apart by their address. Here all have one, so Ray's agents look for a driver's
    log in the head's folder although the driver ran on another node (measured on Ray 2.60). Those
    of other machines are Ray's to bring.
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
        self._head_ip = address.rpartition(":")[0].strip("[]")
        self._clock = clock

    def logs(self, job_id: str) -> Iterator[str]:
        """See `JobRunner.logs`."""
        ours = chain.from_iterable(map(pieces_of, self._files(job_id)))
        start = next(ours, "")
        # The head's folder holds what Ray says of the start, wherever the driver then runs.
        if start and not self._is_elsewhere(self._driver_ip(job_id)):
            yield start
            yield from ours
            return
        rest = super().logs(job_id)
        first = next(rest, "")  # when its node is gone, that is the answer, and not half a log
        yield start
        yield from ours
        yield first
        yield from rest

    def log_end(self, job_id: str, *, limit_bytes: int) -> LogEnd:
        """See `JobRunner.log_end`."""
        end = end_of(self._files(job_id), limit_bytes)
        is_here = end.text and not self._is_elsewhere(self._driver_ip(job_id))
        return end if is_here else super().log_end(job_id, limit_bytes=limit_bytes)

    def follow_logs(self, job_id: str) -> Iterator[str]:
        """See `JobRunner.follow_logs`."""
        files: dict[Path, GrowingFile] = {}
        ip = ""
        while True:
            # The state before the files: what is written later belongs to a job that runs.
            is_ended = self._is_ended(job_id)
            is_silent = True
            for path in self._files(job_id):
                for piece in files.setdefault(path, GrowingFile(path)).fresh(is_last=is_ended):
                    is_silent = False
                    yield piece
            ip = ip or self._driver_ip(job_id)
            if self._is_elsewhere(ip):
                yield from self._follow_elsewhere(job_id)
                # How a driver ended whose node is gone, Ray says in the head's folder.
                for path in self._files(job_id):
                    yield from files.setdefault(path, GrowingFile(path)).fresh(is_last=True)
                return
            if is_ended:
                return
            if is_silent:
                yield ""  # lets a reader that has gone away end this
            self._clock.sleep(_POLL_S)

    def _follow_elsewhere(self, job_id: str) -> Iterator[str]:
        """Yield the driver's output; that of a node that left meanwhile ends with it."""
        has_begun = False
        try:
            for piece in super().follow_logs(job_id):
                has_begun = has_begun or bool(piece)
                yield piece
        except JobError:
            if not has_begun:
                raise

    def _driver_ip(self, job_id: str) -> str:
        """Return the address of the driver's node; `""` before it has one."""
        if self._head_ip == _LOOPBACK:
            return _LOOPBACK  # nodes of other machines could not join
        raw = self._find(job_id) or {}
        return urlsplit(str(raw.get("driver_agent_http_address") or "")).hostname or ""

    def _is_elsewhere(self, driver_ip: str) -> bool:
        return driver_ip not in ("", self._head_ip)

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
