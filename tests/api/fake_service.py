"""A controller with canned, realistic answers. It keeps jobs, switches and packages.

Not a mock: it follows `hybrid.control.service.Service`, and the API and command-line tests
talk to it through a real server.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from hybrid.core.errors import ConfigError, HybridError, JobError
from hybrid.core.models import Job, JobSpec, JobState
from hybrid.core.ports import Mode
from hybrid.core.views import (
    Accepted,
    AuditView,
    ControllerInfo,
    CostView,
    EventsView,
    GcView,
    InstancesView,
    JobCounts,
    JobsView,
    NodesView,
    PlanView,
    StatusView,
)
from tests.api import canned

JOIN_TOKEN = "join-secret"
RAY_TOKEN = "ray-secret"


class FakeService:
    """See `hybrid.control.service.Service`.

    Attributes:
        problem: Raised by every method when set.
        state, phase: What the controller says of itself.
        log_pieces: Output of every job.
        log_gate: Following a log waits for this before it goes on; set means at once.
        closed: Set by `close`.
        followers_ended: Counts followed logs whose reader went away or that ended.
    """

    def __init__(self, *, cluster: str = "lab", cloud_node_count: int = 1) -> None:
        self.cluster = cluster
        self.cloud_node_count = cloud_node_count
        self.problem: Exception | None = None
        self.state = "ready"
        self.phase = ""
        self.mode = Mode()
        self.log_pieces = ["step 1\n", "step 2 \u6b65\u9aa4\n", "done\n"]
        self.log_gate = threading.Event()
        self.log_gate.set()
        self.closed = threading.Event()
        self.followers_ended = threading.Semaphore(0)
        self.packages: dict[str, bytes] = {}
        self.settings: dict[str, object] = {
            "name": cluster,
            "burst": {"queue": {"max_wait": "5m"}},
        }
        self.gc_view: GcView | None = None
        self.reports: list[tuple[str, str, str]] = []
        self.drains: list[tuple[str, float | None, str]] = []
        self.drain_s: float | None = None
        self.submit_count = 0
        self.instance_count = 1
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {job.job_id: job for job in canned.jobs()}

    # --- reading ---------------------------------------------------------------------------

    def status(self) -> StatusView:
        self._check()
        plan = canned.plan()
        return StatusView(
            at_s=canned.NOW_S,
            summary=plan.summary,
            is_bursting=True,
            cluster=canned.cluster(self.cluster),
            controller=ControllerInfo(
                pid=4242,
                epoch=3,
                state=self.state,
                phase=self.phase,
                tick_count=812,
                last_tick_at_s=canned.NOW_S - 1.0,
                tick_s=0.012,
            ),
            mode=self.mode,
            nodes=canned.nodes(self.cloud_node_count),
            instances=canned.instances()[: self.instance_count],
            demand=canned.demand(),
            plan=plan,
            budget=canned.budget(),
            jobs=self._counts(),
            sources=canned.sources(),
            alarms=canned.alarms(),
        )

    def nodes(self) -> NodesView:
        self._check()
        return NodesView(at_s=canned.NOW_S, nodes=canned.nodes(self.cloud_node_count))

    def plan(self) -> PlanView:
        self._check()
        return canned.plan()

    def instances(self, *, limit: int = 1000) -> InstancesView:
        self._check()
        every = canned.instances()[0 if self.instance_count else 1 :]  # the second has ended
        return InstancesView(at_s=canned.NOW_S, instances=every[:limit])

    def events(self, *, after_seq: int = 0, limit: int = 200, subject: str = "") -> EventsView:
        self._check()
        every = [event for event in canned.events() if subject in ("", event.subject)]
        if after_seq:
            page = [event for event in every if event.seq > after_seq][:limit]
        else:
            page = every[-limit:]
        return EventsView(events=tuple(page), next_seq=page[-1].seq if page else after_seq)

    def cost(self, *, since_s: float = 0.0) -> CostView:
        self._check()
        return canned.cost(since_s)

    def config(self) -> dict[str, object]:
        self._check()
        return self.settings

    # --- jobs ------------------------------------------------------------------------------

    def jobs(self, *, limit: int = 200, is_live_only: bool = False) -> JobsView:
        self._check()
        found = [job for job in self._jobs.values() if not (is_live_only and job.state.is_ended)]
        newest = sorted(found, key=lambda job: -job.created_at_s)
        return JobsView(at_s=canned.NOW_S, jobs=tuple(newest[:limit]))

    def job(self, job_id: str) -> Job:
        self._check()
        try:
            return self._jobs[job_id]
        except KeyError:
            raise JobError(f"no job {job_id!r}; `hybrid jobs` lists them") from None

    def audit(self, job_id: str) -> AuditView:
        return canned.audit_of(self.job(job_id))

    def submit(self, spec: JobSpec, *, job_id: str = "") -> Job:
        self._check()
        if spec.entrypoint == "refuse me":
            raise JobError("Ray refuses this entrypoint")
        with self._lock:
            self.submit_count += 1
            new_id = job_id or f"j-{self.submit_count:012x}"
            at_s = canned.NOW_S + self.submit_count
            fresh = Job(
                job_id=new_id,
                spec=spec,
                state=JobState.QUEUED,
                created_at_s=at_s,
                state_at_s=at_s,
            )
            return self._jobs.setdefault(new_id, fresh)

    def finish(self, job_id: str, state: JobState, message: str = "") -> None:
        """End a job, as Ray would."""
        with self._lock:
            ended = {"state": state, "message": message, "ended_at_s": canned.NOW_S + 9.0}
            self._jobs[job_id] = self._jobs[job_id].model_copy(update=ended)

    def cancel(self, job_id: str) -> Job:
        job = self.job(job_id)
        if job.ended_at_s is None:
            self.finish(job_id, JobState.CANCELLED)
        return self._jobs[job_id]

    def job_logs(self, job_id: str, *, is_following: bool = False) -> Iterator[str]:
        self.job(job_id)
        try:
            for piece in self.log_pieces:
                yield piece
                while is_following and not self.log_gate.wait(0.05):
                    yield ""
        finally:
            self.followers_ended.release()

    def upload(self, name: str, content: bytes) -> Accepted:
        self._check()
        self.packages[name] = content
        return Accepted(message=f"stored {name}", facts={"size_bytes": len(content)})

    # --- the operator ----------------------------------------------------------------------

    def drain(self, target: str, *, deadline_s: float | None, owner: str) -> Accepted:
        self._check()
        if target == "head":
            raise HybridError("the head cannot be drained; `hybrid down` ends the cluster")
        self.drains.append((target, deadline_s, owner))
        return Accepted(message=f"{target} takes no new work and ends in 10m at the latest")

    def pause(self, direction: str, *, owner: str) -> Accepted:
        self._check()
        self.mode = Mode(
            is_out_paused=direction in ("out", "all") or self.mode.is_out_paused,
            is_in_paused=direction in ("in", "all") or self.mode.is_in_paused,
            is_dry_run=direction == "dry-run" or self.mode.is_dry_run,
            owner=owner,
        )
        return Accepted(message=f"{direction} is paused")

    def resume(self, direction: str, *, owner: str) -> Accepted:
        self._check()
        self.mode = Mode(
            is_out_paused=direction not in ("out", "all") and self.mode.is_out_paused,
            is_in_paused=direction not in ("in", "all") and self.mode.is_in_paused,
            is_dry_run=direction not in ("dry-run", "all") and self.mode.is_dry_run,
            owner=owner,
        )
        return Accepted(message=f"{direction} goes on")

    def gc(self, *, is_dry_run: bool) -> GcView:
        self._check()
        return self.gc_view or canned.gc(is_dry_run)

    def close(self, *, drain_s: float | None, owner: str) -> Accepted:
        self._check()
        self.drain_s = drain_s
        self.state = "closing"
        self.phase = "returning 1 instance"
        self.closed.set()
        return Accepted(message=f"closing, asked by {owner or 'somebody'}")

    def join(self, instance_id: str, join_token: str) -> str:
        self._check()
        if join_token != JOIN_TOKEN:
            raise HybridError(f"{instance_id}: the join token is wrong or was used before")
        return RAY_TOKEN

    def report(self, instance_id: str, join_token: str, *, phase: str, problem: str) -> None:
        self._check()
        if join_token != JOIN_TOKEN:
            raise HybridError("no instance with this id and token is expected")
        self.reports.append((instance_id, phase, problem))

    # --- inside ----------------------------------------------------------------------------

    def _check(self) -> None:
        if self.problem is not None:
            raise self.problem

    def _counts(self) -> JobCounts:
        counts: dict[str, int] = {}
        for job in self._jobs.values():
            counts[job.state.value] = counts.get(job.state.value, 0) + 1
        return JobCounts(**counts)


def broken_config() -> ConfigError:
    """Return an error as the settings raise it."""
    return ConfigError("hybrid.yaml: budget.nodes: -1 is below 0; write 0 or more (line 9)")
