"""Ray Jobs on a cluster whose nodes share one machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hybrid.adapters.ray import RayJobs
from hybrid.core.errors import JobError
from hybrid.core.ports import Clock

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

    def logs(self, job_id: str) -> str:
        """See `JobRunner.logs`."""
        return "".join(self._read(path) for path in self._files(job_id)) or super().logs(job_id)

    def follow_logs(self, job_id: str) -> Iterator[str]:
        """See `JobRunner.follow_logs`."""
        read_bytes: dict[Path, int] = {}
        while True:
            # The state before the files: what is written later belongs to a job that runs.
            is_ended = self._is_ended(job_id)
            for path in self._files(job_id):
                yield self._fresh(path, read_bytes, is_last=is_ended)
            if is_ended:
                return
            self._clock.sleep(_POLL_S)

    def _is_ended(self, job_id: str) -> bool:
        status = self.statuses().get(job_id)
        if status is None:
            raise JobError(f"Ray does not know job {job_id}")
        return status.state.is_ended

    def _files(self, job_id: str) -> list[Path]:
        """Return the job's log files: the head's first, where Ray notes what it prepares."""
        name = f"job-driver-{job_id}.log"
        found = self._ray_dir.glob(f"*/session_*/logs/{name}")
        files = [p for p in found if not p.parent.parent.is_symlink()]
        return sorted(files, key=lambda p: (p.parts[len(self._ray_dir.parts)] != "head", str(p)))

    @staticmethod
    def _read(path: Path) -> str:
        try:
            return path.read_bytes().decode(errors="replace")
        except OSError:
            return ""  # its node has just left

    @staticmethod
    def _fresh(path: Path, read_bytes: dict[Path, int], *, is_last: bool) -> str:
        try:
            with path.open("rb") as file:
                file.seek(read_bytes.get(path, 0))
                content = file.read()
        except OSError:
            return ""
        # Whole lines only, so that no character is cut in two, until the job has ended.
        end = len(content) if is_last else content.rfind(b"\n") + 1
        read_bytes[path] = read_bytes.get(path, 0) + end
        return content[:end].decode(errors="replace")
