"""Running drivers, and what is kept of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, Protocol

from hybrid.core.models import JobSpec, JobState, Model


class JobStatus(Model):
    """What Ray says about a job.

    Attributes:
        started_at_s: When Ray took it, once its driver has started; the driver may have waited
            in between.
    """

    state: JobState
    message: str = ""
    started_at_s: float | None = None
    ended_at_s: float | None = None


KEPT_LOG_BYTES = 8 * 2**20
"""Of each job's output, from its end: enough to see why it failed, and bounded."""


class LogEnd(Model):
    """The end of a job's output.

    Attributes:
        skipped_bytes: How much came before it.
    """

    text: str
    skipped_bytes: int = 0


class TaskCount(Model):
    """Tasks of one kind that Ray placed on one node.

    Attributes:
        kind: `task` or `actor`.
        name: Of the function or class.
    """

    node_id: str
    kind: Literal["task", "actor"]
    name: str
    count: int


class JobRunner(Protocol):
    """Runs drivers: Ray Jobs."""

    def submit(
        self, job_id: str, spec: JobSpec, *, selector: Mapping[str, str], kit: str = ""
    ) -> None:
        """Start the job; a second call with the same id changes nothing.

        Args:
            job_id: Ray's id for it.
            spec: What to run, and what its driver needs.
            selector: Labels of the node that its driver may run on.
            kit: An uploaded package that is put into the driver's Python path.

        Raises:
            ClusterError: Unreachable; the job may have been started.
            JobError: Ray refuses it for good.
        """
        ...

    def statuses(self) -> Mapping[str, JobStatus]:
        """Return the state of every job Ray knows, by our id.

        Raises:
            ClusterError: Unreachable.
        """
        ...

    def tasks(self, job_id: str) -> tuple[Sequence[TaskCount], bool]:
        """Return where the tasks of a job ran, as far as Ray still knows.

        Returns:
            The counts, and whether these are all.

        Raises:
            ClusterError: Unreachable.
        """
        ...

    def put_note(self, key: str, value: bytes) -> None:
        """Leave a note for a job where its processes can read it.

        Raises:
            ClusterError: Unreachable.
        """
        ...

    def note(self, key: str) -> bytes | None:
        """Return a note of a job, or `None` when there is none. Raises as `put_note`."""
        ...

    def stop(self, job_id: str) -> None:
        """Ask Ray to end the job; unknown or ended jobs are left alone.

        Raises:
            ClusterError: Unreachable.
        """
        ...

    def logs(self, job_id: str) -> Iterator[str]:
        """Yield all output of the job so far, in pieces: it may be larger than the memory.

        Raises:
            ClusterError: Unreachable.
            JobError: Ray does not know the job (yet, or any more).
        """
        ...

    def log_end(self, job_id: str, *, limit_bytes: int) -> LogEnd:
        """Return the last bytes of the job's output, at most so many. Raises as `logs`."""
        ...

    def follow_logs(self, job_id: str) -> Iterator[str]:
        """Yield output as it comes, until the job ends. Raises as `logs`."""
        ...

    def upload(self, name: str, content: bytes) -> None:
        """Store a zipped working directory under `name`, if it is not there yet.

        Raises:
            ClusterError: Unreachable.
        """
        ...


class Packages(Protocol):
    """Uploaded working directories."""

    def put(self, name: str, content: bytes) -> None:
        """Store a package; a known name changes nothing, since names are made from contents.

        Raises:
            HybridError: There is no room.
            JobError: The name cannot be one.
        """
        ...

    def get(self, name: str) -> bytes:
        """Return a package.

        Raises:
            JobError: It is not there.
            ClusterError: It cannot be read now.
        """
        ...

    def keep_only(self, names: Collection[str]) -> None:
        """Forget all other packages, but for new ones: their jobs are on the way. Never raises."""
        ...


class JobLogs(Protocol):
    """The output of ended jobs, kept when nodes have left and Ray has forgotten them."""

    def put(self, job_id: str, end: LogEnd) -> None:
        """Keep the end of a job's output; older ones may have to go for it. Never raises."""
        ...

    def get(self, job_id: str) -> str | None:
        """Return a job's kept output, or `None` when there is none."""
        ...
