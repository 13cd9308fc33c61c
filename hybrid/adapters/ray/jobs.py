"""Ray Jobs over the dashboard's REST API.

Ray's own `JobSubmissionClient` is not used: importing it costs half a second and 20 MB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ray.dashboard import Dashboard, reason_of
from hybrid.adapters.ray.gcs import Gcs
from hybrid.adapters.ray.logbody import log_text
from hybrid.adapters.ray.tail import tail
from hybrid.adapters.ray.tasks import tasks_of
from hybrid.adapters.text_files import end_of_pieces
from hybrid.core.errors import ClusterError, JobError
from hybrid.core.models import JobSpec, JobState
from hybrid.core.ports import Clock, JobStatus, LogEnd, TaskCount

_STATES: Mapping[str, JobState] = {
    "PENDING": JobState.SUBMITTED,
    "RUNNING": JobState.RUNNING,
    "SUCCEEDED": JobState.SUCCEEDED,
    "FAILED": JobState.FAILED,
    "STOPPED": JobState.CANCELLED,
}
# Ray accepts any id, but one with a slash can never be asked about again.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_PACKAGE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\.zip")
_PACKAGE_BYTES_MAX = 100 * 1024**2  # of Ray's dashboard
_UPLOAD_TIMEOUT_S = 120.0
_SILENT_STREAMS_MAX = 5


class RayJobs:
    """See `hybrid.core.ports.JobRunner`."""

    def __init__(
        self,
        dashboard_url: str,
        token: str,
        *,
        address: str,
        timeout_s: float = 15.0,
        clock: Clock | None = None,
    ) -> None:
        """Remember where Ray is; does not connect.

        Args:
            dashboard_url: `http://host:port` of Ray's dashboard.
            token: Ray's auth token; `""` for a cluster without one.
            address: `host:port` of Ray's GCS; the REST API cannot stop a job that waits.
            timeout_s: Longest wait for one answer. Ray itself waits up to 10 s for its agent.
            clock: The system's clock unless given.
        """
        self._dashboard = Dashboard(dashboard_url, token, timeout_s=timeout_s)
        self._gcs = Gcs(address, token)
        self._clock = clock or SystemClock()

    def submit(
        self, job_id: str, spec: JobSpec, *, selector: Mapping[str, str], kit: str = ""
    ) -> None:
        """See `JobRunner.submit`.

        Without GPUs, CPUs, memory and selector Ray runs the driver on the head.
        A package must have been uploaded within the last ten minutes (see `upload`).
        """
        if not _ID.fullmatch(job_id):
            raise JobError(
                f"{job_id!r} cannot be a job id; use up to 128 letters, digits, '-', '_' and '.'"
            )
        response = self._dashboard.call(
            "POST", "/api/jobs/", json=_request(job_id, spec, selector, kit)
        )
        if response.status_code == 200:
            return
        reason = reason_of(response.text)
        if "already exists" in reason:
            return
        # The agent's 400 comes back from the dashboard as a 500 that quotes it.
        if response.status_code == 400 or "status code 400" in response.text:
            raise JobError(f"Ray refuses job {job_id}: {reason}")
        raise self._dashboard.error(response, f"start job {job_id}")

    def statuses(self) -> Mapping[str, JobStatus]:
        """See `JobRunner.statuses`."""
        response = self._dashboard.call("GET", "/api/jobs/")
        found = self._dashboard.json(response, "list the jobs")
        try:
            return {
                raw["submission_id"]: _status(raw)
                for raw in found
                if raw.get("submission_id")  # drivers that nobody submitted have none
            }
        except (AttributeError, KeyError, TypeError, ValueError) as err:
            raise ClusterError(
                f"Ray's dashboard at {self._dashboard.url} lists its jobs in a form that is not "
                f"understood ({type(err).__name__}: {err}); use the version of Ray that hybrid "
                "asks for"
            ) from err

    def tasks(self, job_id: str) -> tuple[Sequence[TaskCount], bool]:
        """See `JobRunner.tasks`. Ray keeps the last 100,000 task events of all jobs."""
        return tasks_of(self._dashboard, job_id)

    def put_note(self, key: str, value: bytes) -> None:
        """See `JobRunner.put_note`. Notes are lost with Ray's head, as its jobs are."""
        self._gcs.put(key, value)

    def note(self, key: str) -> bytes | None:
        """See `JobRunner.note`."""
        return self._gcs.get(key)

    def stop(self, job_id: str) -> None:
        """See `JobRunner.stop`. Ask again until the job has ended."""
        raw = self._find(job_id)
        if raw is None or _status(raw).state.is_ended:
            return
        if raw["status"] == "PENDING":
            self._gcs.end_job_supervisor(job_id)
            return
        response = self._dashboard.call("POST", f"/api/jobs/{job_id}/stop")
        if response.status_code not in (200, 404):
            raise self._dashboard.error(response, f"stop job {job_id}")

    def logs(self, job_id: str) -> Iterator[str]:
        """See `JobRunner.logs`."""
        return self._drivers_log(job_id)

    def _drivers_log(self, job_id: str) -> Iterator[str]:
        _check_known(job_id, is_known=_ID.fullmatch(job_id) is not None)
        with self._dashboard.stream(f"/api/jobs/{job_id}/logs") as response:
            if response.status_code != 200:
                response.read()
            _check_known(job_id, is_known=response.status_code != 404)
            if response.status_code == 500 and "Cannot connect to host" in response.text:
                raise JobError(
                    f"the log of job {job_id} is gone: it was on the node that ran the driver, "
                    "and that node has left; write results to shared storage"
                )
            if response.status_code != 200:
                raise self._dashboard.error(response, f"read the log of job {job_id}")
            try:
                yield from log_text(response.iter_bytes())
            except ValueError as err:
                raise ClusterError(
                    f"Ray's dashboard at {self._dashboard.url} sent the log of job {job_id} in a "
                    f"form that is not understood ({err}); ask for it again"
                ) from err

    def log_end(self, job_id: str, *, limit_bytes: int) -> LogEnd:
        """See `JobRunner.log_end`. Ray has no way to ask for the end alone."""
        return end_of_pieces(self.logs(job_id), limit_bytes)

    def follow_logs(self, job_id: str) -> Iterator[str]:
        """See `JobRunner.follow_logs`. Lines come within about two seconds."""
        seen_count = silent_count = 0
        while silent_count < _SILENT_STREAMS_MAX:
            raw = self._find(job_id)
            _check_known(job_id, is_known=raw is not None)
            if raw is not None and _status(raw).state.is_ended:
                # not `logs`, to which a subclass may add: the stream had only this
                yield from _after(self._drivers_log(job_id), seen_count)
                return
            silent_count += 1
            # Each stream starts at the beginning.
            stream = tail(self._dashboard.url, self._dashboard.headers, job_id)
            try:
                for fresh in _after(stream, seen_count):
                    seen_count, silent_count = seen_count + len(fresh), 0
                    yield fresh
            except ClusterError:  # its node may be gone, which Ray takes a while to see
                if silent_count == _SILENT_STREAMS_MAX:
                    raise
            if silent_count:
                self._clock.sleep(1.0)
        raise ClusterError(
            f"Ray closed the log of job {job_id} {silent_count} times without a word while the "
            "job goes on; ask for the log again later"
        )

    def upload(self, name: str, content: bytes) -> None:
        """See `JobRunner.upload`. The name ends in `.zip`.

        Ray keeps the package for ten minutes, and as long as a job uses it. So upload right
        before each submit; when it is still there, this costs one short request.

        Raises:
            ClusterError: Unreachable.
            JobError: Ray cannot take such a package.
        """
        if not _PACKAGE.fullmatch(name):
            raise JobError(
                f"{name!r} cannot be a package name; use letters, digits, '-', '_' and '.', and "
                "end it in .zip"
            )
        if len(content) > _PACKAGE_BYTES_MAX:
            raise JobError(
                f"package {name} has {len(content) / 1024**2:.0f} MiB, Ray takes "
                f"{_PACKAGE_BYTES_MAX // 1024**2}; keep data out of the working directory"
            )
        path = f"/api/packages/gcs/{name}"
        # Asking also makes Ray keep what is there, or comes now, for ten minutes.
        if self._dashboard.call("GET", path).status_code == 200:
            return
        response = self._dashboard.call("PUT", path, content=content, timeout=_UPLOAD_TIMEOUT_S)
        if response.status_code != 200:
            raise self._dashboard.error(response, f"store package {name}")

    def close(self) -> None:
        """Close all connections."""
        self._dashboard.close()
        self._gcs.close()

    def _find(self, job_id: str) -> Mapping[str, Any] | None:
        """Return what Ray says about the job; `None` when it does not know it."""
        if not _ID.fullmatch(job_id):
            return None
        response = self._dashboard.call("GET", f"/api/jobs/{job_id}")
        if response.status_code == 404:
            return None
        found: Mapping[str, Any] = self._dashboard.json(response, f"find job {job_id}")
        return found


def _after(pieces: Iterable[str], seen_count: int) -> Iterator[str]:
    """Yield pieces without their first characters."""
    for piece in pieces:
        if fresh := piece[seen_count:]:
            yield fresh
        seen_count = max(0, seen_count - len(piece))


def _request(
    job_id: str, spec: JobSpec, selector: Mapping[str, str], kit: str
) -> dict[str, object]:
    runtime_env: dict[str, object] = {}
    if kit:
        runtime_env["py_modules"] = [f"gcs://{kit}"]
    if spec.package:
        runtime_env["working_dir"] = f"gcs://{spec.package}"
    if spec.env:
        runtime_env["env_vars"] = dict(spec.env)
    wants = {
        "entrypoint_num_gpus": spec.gpus,
        "entrypoint_num_cpus": spec.cpus,
        "entrypoint_memory": spec.memory_bytes,
        "entrypoint_label_selector": dict(selector),
    }
    metadata = {**spec.tags, "hybrid.name": spec.name, "hybrid.user": spec.user}
    return {
        "submission_id": job_id,
        "entrypoint": spec.entrypoint,
        "runtime_env": runtime_env,
        "metadata": {key: value for key, value in metadata.items() if value},
        **{key: value for key, value in wants.items() if value},
    }


def _status(raw: Mapping[str, Any]) -> JobStatus:
    # A status we do not know is not the end of the job.
    state = _STATES.get(raw["status"], JobState.RUNNING)
    message = raw.get("message") or ""
    if state is JobState.FAILED and _was_ended_by_us(raw, message):
        state, message = JobState.CANCELLED, "Stopped before it started."
    # Ray names the driver's agent from the start of the driver on.
    started_at_ms = raw.get("start_time") if raw.get("driver_agent_http_address") else None
    ended_at_ms = raw.get("end_time")
    return JobStatus(
        state=state,
        message=_short(message) if state in (JobState.FAILED, JobState.CANCELLED) else "",
        started_at_s=started_at_ms / 1000 if started_at_ms else None,
        ended_at_s=ended_at_ms / 1000 if ended_at_ms and state.is_ended else None,
    )


def _was_ended_by_us(raw: Mapping[str, Any], message: str) -> bool:
    """Whether this is what Ray says after `Gcs.end_job_supervisor`."""
    return raw.get("error_type") == "JOB_SUPERVISOR_ACTOR_DIED" and "`ray.kill`" in message


def _short(message: str) -> str:
    """Return one line; the log that Ray quotes is to be had as the log."""
    return " ".join(message.partition(", last available logs")[0].split())[:500]


def _check_known(job_id: str, *, is_known: bool) -> None:
    if not is_known:
        raise JobError(
            f"Ray knows no job {job_id}: it has not started yet, or the head was restarted since"
        )
