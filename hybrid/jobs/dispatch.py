"""Handing jobs to Ray and following them until their end.

First form: every job is handed over at once. The queue with priorities takes this place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.core.errors import ClusterError, JobError
from hybrid.core.models import Event, Job, JobState, Node, NodeStatus
from hybrid.core.policy.room import fits
from hybrid.core.ports import Clock, JobLogs, JobRunner, JobStatus, Ledger, Packages

_S = JobState
ENDED = frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLED})

# Ray answers for a job a moment after it took it; a job unknown for longer is lost.
_LOST_AFTER_S = 60.0


@dataclass
class Dispatcher:
    """Moves jobs from the ledger to Ray, and their states back.

    Attributes:
        _doubtful: Queued jobs that Ray may have all the same: its answer was lost, or a
            controller crashed between the submission and its note. `None` before the first
            step, when all of them are.
    """

    ledger: Ledger
    runner: JobRunner
    packages: Packages
    logs: JobLogs
    clock: Clock
    _unknown_since_s: dict[str, float] = field(default_factory=dict)
    _failed_at_s: dict[str, float] = field(default_factory=dict)
    _doubtful: set[str] | None = None

    def step(self, nodes: tuple[Node, ...], *, is_ray_up: bool) -> None:
        """Do what can be done for every live job now."""
        jobs = self.ledger.jobs(is_live_only=True, limit=None)
        queued = [j for j in jobs if j.state is _S.QUEUED]
        if self._doubtful is None:
            self._doubtful = {j.job_id for j in queued}
        if not jobs:
            return
        started = [j for j in jobs if j.state is not _S.QUEUED]
        for job in queued:
            if job.is_cancel_asked and job.job_id in self._doubtful:
                started.append(job)
            elif job.is_cancel_asked:
                self._move(job, _S.CANCELLED, "cancelled before it started")
        if not is_ray_up:
            return
        try:
            if started:
                self._follow(started)
            self._submit_all([j for j in queued if not j.is_cancel_asked], nodes)
        except ClusterError:
            # The dashboard is not up yet, or is restarting. The ledger keeps the jobs.
            return

    def cancel_all(self, owner: str) -> None:
        """Ask for the end of every live job."""
        for job in self.ledger.jobs(is_live_only=True, limit=None):
            if not job.is_cancel_asked:
                self.ledger.save_job(
                    job.model_copy(update={"is_cancel_asked": True}),
                    self._event("job_cancel_asked", job, f"by {owner}"),
                )

    def close_all(self, message: str) -> None:
        """Close every live job: Ray has ended, and its drivers with it."""
        for job in self.ledger.jobs(is_live_only=True, limit=None):
            self._move(job, _S.CANCELLED, message)

    def _submit_all(self, jobs: Sequence[Job], nodes: tuple[Node, ...]) -> None:
        # One that fails again and again must not stop the others: it comes last the next time.
        for job in sorted(jobs, key=lambda j: self._failed_at_s.get(j.job_id, 0.0)):
            try:
                self._submit(job, nodes)
            except ClusterError:
                self._failed_at_s[job.job_id] = self.clock.monotonic_s()
                self._doubt(job.job_id)
                raise

    def _doubt(self, job_id: str, *, is_over: bool = False) -> None:
        doubtful = self._doubtful or set()
        self._doubtful = doubtful - {job_id} if is_over else doubtful | {job_id}

    def _submit(self, job: Job, nodes: tuple[Node, ...]) -> None:
        selector = entrypoint_selector(job, nodes)
        self.ledger.check_epoch()
        try:
            if job.spec.package:
                # Each time: Ray forgets packages that no job uses, and all of them with its head.
                self.runner.upload(job.spec.package, self.packages.get(job.spec.package))
            self.runner.submit(job.job_id, job.spec, selector=selector)
        except JobError as error:
            self._move(job, _S.FAILED, str(error))
        else:
            self._move(job, _S.SUBMITTED, "")

    def _follow(self, jobs: list[Job]) -> None:
        statuses: Mapping[str, JobStatus] = self.runner.statuses()
        for job in jobs:
            status = statuses.get(job.job_id)
            if job.is_cancel_asked and not (status and status.state.is_ended):
                self.ledger.check_epoch()
                self.runner.stop(job.job_id)
            if status is None:
                self._miss(job)
            elif status.state is not job.state:
                self._catch_up(job, status)
            else:
                self._unknown_since_s.pop(job.job_id, None)

    def _catch_up(self, job: Job, status: JobStatus) -> None:
        if status.state.is_ended and not self._keep_log(job):
            return
        self._unknown_since_s.pop(job.job_id, None)
        self._move(job, status.state, status.message, status)

    def _keep_log(self, job: Job) -> bool:
        """Keep the output before the driver's node can leave; return whether to go on.

        Output that cannot be read is waited for, but not for ever: its node may be dead.
        """
        try:
            self.logs.put(job.job_id, self.runner.logs(job.job_id))
        except JobError:
            return True  # it never wrote anything
        except ClusterError:
            return self._is_missed_for_long(job)
        return True

    def _miss(self, job: Job) -> None:
        if not self._is_missed_for_long(job):
            return
        if job.is_cancel_asked:
            self._move(job, _S.CANCELLED, "cancelled; Ray does not know it")
        else:
            self._move(job, _S.FAILED, "Ray no longer knows this job: its head was restarted")

    def _is_missed_for_long(self, job: Job) -> bool:
        now_s = self.clock.monotonic_s()
        return now_s - self._unknown_since_s.setdefault(job.job_id, now_s) >= _LOST_AFTER_S

    def _move(
        self, job: Job, state: JobState, message: str, status: JobStatus | None = None
    ) -> None:
        now_s = self.clock.now_s()
        changes: dict[str, object] = {"state": state, "state_at_s": now_s, "message": message}
        if state is _S.RUNNING:
            # Ray's own start time is that of the submission, so the first sight counts.
            changes["started_at_s"] = (status.started_at_s if status else None) or now_s
        if state in ENDED:
            changes["ended_at_s"] = (status.ended_at_s if status else None) or now_s
            self._unknown_since_s.pop(job.job_id, None)
        if state is not _S.QUEUED:
            self._failed_at_s.pop(job.job_id, None)
            self._doubt(job.job_id, is_over=True)
        moved = job.model_copy(update=changes)
        self.ledger.save_job(moved, self._event(f"job_{state.value}", job, message))

    def _event(self, kind: str, job: Job, message: str) -> Event:
        return Event(
            at_s=self.clock.now_s(),
            epoch=0,
            kind=kind,
            subject=job.job_id,
            message=message,
            facts={"name": job.spec.name} if job.spec.name else {},
        )


def entrypoint_selector(job: Job, nodes: tuple[Node, ...]) -> Mapping[str, str]:
    """Return where a job's driver may run.

    Ray knows no fallback for drivers, so "home first" is decided here, once: at home if a node
    there is large enough to hold the driver at all, or else in the cloud. A driver that asks
    for nothing is left to Ray, which runs it on the head.
    """
    if job.spec.site != "any":
        return {"site": job.spec.site}
    need = {
        name: amount
        for name, amount in (
            ("GPU", job.spec.gpus),
            ("CPU", job.spec.cpus),
            ("memory", job.spec.memory_bytes),
        )
        if amount
    }
    home = [n for n in nodes if not n.instance_id and n.status is not NodeStatus.DEAD]
    if not need:
        return {}
    if any(fits(need, node.total) for node in home):
        return {"site": "onprem"}
    return {"site": "cloud"}
