"""What the HTTP API can ask of the controller; thread-safe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from hybrid.core.models import Job, JobSpec
from hybrid.core.views import (
    Accepted,
    AuditView,
    CostView,
    EventsView,
    GcView,
    InstancesView,
    JobsView,
    NodesView,
    PlanView,
    StatusView,
)


class Service(Protocol):
    """The controller as its users see it.

    Every method may raise `HybridError`; the API turns its class into a status code.
    """

    def status(self) -> StatusView:
        """Return the last published view; never waits for a tick."""
        ...

    def nodes(self) -> NodesView:
        """Return the nodes of the last view."""
        ...

    def plan(self) -> PlanView:
        """Return the last decision."""
        ...

    def instances(self, *, limit: int = 1000) -> InstancesView:
        """Return rented instances, ended ones included."""
        ...

    def events(self, *, after_seq: int = 0, limit: int = 200, subject: str = "") -> EventsView:
        """Return history."""
        ...

    def cost(self, *, since_s: float = 0.0) -> CostView:
        """Return estimated spend since an instant."""
        ...

    def jobs(self, *, limit: int = 200, is_live_only: bool = False) -> JobsView:
        """Return jobs, newest first; or those that have not ended, oldest first."""
        ...

    def job(self, job_id: str) -> Job:
        """Return one job. Raises `JobError` when unknown."""
        ...

    def audit(self, job_id: str) -> AuditView:
        """Return where a job ran. Raises `JobError` when it is unknown."""
        ...

    def submit(self, spec: JobSpec, *, job_id: str = "") -> Job:
        """Store a job and wake the loop; the same `job_id` again returns the same job."""
        ...

    def cancel(self, job_id: str) -> Job:
        """Ask for a job's end; ended jobs are returned as they are."""
        ...

    def job_logs(self, job_id: str, *, is_following: bool = False) -> Iterator[str]:
        """Yield a job's output; until it ends when following."""
        ...

    def upload(self, name: str, content: bytes) -> Accepted:
        """Store a zipped working directory."""
        ...

    def drain(self, target: str, *, deadline_s: float | None, owner: str) -> Accepted:
        """Drain an instance (id, node id or unique prefix); rented ones end afterwards."""
        ...

    def pause(self, direction: str, *, owner: str) -> Accepted:
        """Pause `out` (launches), `in` (scale-in), `all` of both, or every change (`dry-run`)."""
        ...

    def resume(self, direction: str, *, owner: str) -> Accepted:
        """Undo `pause`; `all` undoes a dry run, too."""
        ...

    def gc(self, *, is_dry_run: bool) -> GcView:
        """Look for orphans now, the clouds listed first; end them unless `is_dry_run`."""
        ...

    def close(self, *, drain_s: float | None, owner: str) -> Accepted:
        """Begin `down`: return everything rented, stop the nodes and the head, exit.

        Args:
            drain_s: How long running work may go on. `None` ends it at once, or, when the
                cluster is going down already, leaves it the time it has.
            owner: Who asked.
        """
        ...

    def join(self, instance_id: str, join_token: str) -> str:
        """Trade a one-time join token for Ray's token. Raises `HybridError` if refused."""
        ...

    def report(self, instance_id: str, join_token: str, *, phase: str, problem: str) -> None:
        """Hear what a rented node does, or why it cannot. Raises `HybridError` if refused."""
        ...

    def config(self) -> dict[str, object]:
        """Return the configuration in force, secrets left out."""
        ...
