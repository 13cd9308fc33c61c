"""Handing jobs to Ray and following them until their end.

First form: every job is handed over at once. The queue with priorities takes this place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hybrid.core.errors import ClusterError, JobError
from hybrid.core.models import Event, Job, JobState, Node
from hybrid.core.policy.plan import Host
from hybrid.core.ports import (
    KEPT_LOG_BYTES,
    Clock,
    JobLogs,
    JobRunner,
    JobStatus,
    Ledger,
    Packages,
)
from hybrid.jobs.placing import Absences, entrypoint_selector

_S = JobState
Place: TypeAlias = Callable[[Job], Mapping[str, str]]
"""Where a job's driver may run, as Ray's label selector."""

# Ray answers for a job a moment after it took it; a job unknown for longer is lost.
_LOST_AFTER_S = 60.0

# Packages that never got a job are found by time alone.
_PRUNE_EVERY_S = 3600.0


@dataclass
class Dispatcher:
    """Moves jobs from the ledger to Ray, and their states back.

    Attributes:
        _doubtful: Queued jobs that Ray may have all the same: its answer was lost, it could not
            be noted, or a controller crashed between the submission and its note. `None` before
            the first step, when all of them are.
        _failed_at_s: When a job's submission or stop last failed.
        _waited_at_s: When Ray last said of a job that its driver waits.
    """

    ledger: Ledger
    runner: JobRunner
    packages: Packages
    logs: JobLogs
    clock: Clock
    _unknown_since_s: dict[str, float] = field(default_factory=dict)
    _failed_at_s: dict[str, float] = field(default_factory=dict)
    _waited_at_s: dict[str, float] = field(default_factory=dict)
    _doubtful: set[str] | None = None

    def __post_init__(self) -> None:
        """Make what only the dispatcher needs."""
        self._absences = Absences(self.clock)
        self._prune_at_s = self.clock.monotonic_s()

    def step(
        self,
        nodes: tuple[Node, ...],
        *,
        is_ray_up: bool,
        hosts: Iterable[Host] = (),
        has_clouds: bool = True,
    ) -> None:
        """Do what can be done for every live job now.

        Args:
            nodes: What Ray has.
            is_ray_up: Whether Ray answers.
            hosts: What is configured at home, whether it is a node yet or not.
            has_clouds: Whether there is any cloud to send a driver to.
        """
        expected = self._absences.expected(nodes, hosts, is_ray_up=is_ray_up)
        self._work(
            lambda job: entrypoint_selector(job, nodes, expected=expected, has_clouds=has_clouds),
            is_ray_up=is_ray_up,
        )
        if self.clock.monotonic_s() >= self._prune_at_s:
            self._prune()

    def _work(self, place: Place, *, is_ray_up: bool) -> None:
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
            self._submit_all([j for j in queued if not j.is_cancel_asked], place)
        except ClusterError:
            # The dashboard is not up yet, or is restarting. The ledger keeps the jobs.
            return

    def _prune(self) -> None:
        """Forget the packages that no live job needs."""
        live = self.ledger.jobs(is_live_only=True, limit=None)
        self.packages.keep_only({job.spec.package for job in live})
        self._prune_at_s = self.clock.monotonic_s() + _PRUNE_EVERY_S

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

    def _submit_all(self, jobs: Sequence[Job], place: Place) -> None:
        for job in self._failed_last(jobs):
            try:
                self._submit(job, place(job))
            except ClusterError:
                self._note_failure(job)
                raise

    def _failed_last(self, jobs: Iterable[Job]) -> list[Job]:
        """Return jobs in the order to try them.

        Each failure may cost a long wait, so it ends the round; one that fails again and again
        must not stop the others: it comes last the next time.
        """
        return sorted(jobs, key=lambda j: self._failed_at_s.get(j.job_id, 0.0))

    def _note_failure(self, job: Job) -> None:
        self._failed_at_s[job.job_id] = self.clock.monotonic_s()

    def _doubt(self, job_id: str, *, is_over: bool = False) -> None:
        doubtful = self._doubtful or set()
        self._doubtful = doubtful - {job_id} if is_over else doubtful | {job_id}

    def _submit(self, job: Job, selector: Mapping[str, str]) -> None:
        self.ledger.check_epoch()
        try:
            if job.spec.package:
                # Each time: Ray forgets packages that no job uses, and all of them with its head.
                self.runner.upload(job.spec.package, self.packages.get(job.spec.package))
            # From here until the ledger says so, Ray may have it.
            self._doubt(job.job_id)
            self.runner.submit(job.job_id, job.spec, selector=selector)
        except JobError as error:
            self._move(job, _S.FAILED, str(error))
        else:
            self._move(job, _S.SUBMITTED, "")

    def _follow(self, jobs: list[Job]) -> None:
        statuses: Mapping[str, JobStatus] = self.runner.statuses()
        self._stop_cancelled(jobs, statuses)
        for job in jobs:
            status = statuses.get(job.job_id)
            if status is None:
                self._miss(job)
            elif status.state is not job.state:
                self._catch_up(job, status)
            else:
                self._unknown_since_s.pop(job.job_id, None)
                if status.state is _S.SUBMITTED:
                    self._waited_at_s[job.job_id] = self.clock.now_s()

    def _stop_cancelled(self, jobs: list[Job], statuses: Mapping[str, JobStatus]) -> None:
        for job in self._failed_last(j for j in jobs if j.is_cancel_asked):
            status = statuses.get(job.job_id)
            if status is not None and status.state.is_ended:
                continue
            self.ledger.check_epoch()
            try:
                self.runner.stop(job.job_id)
            except ClusterError:
                self._note_failure(job)
                return  # its own trouble: the states of all are followed all the same

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
            end = self.runner.log_end(job.job_id, limit_bytes=KEPT_LOG_BYTES)
            self.logs.put(job.job_id, end)
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
        if job.started_at_s is None and (state is _S.RUNNING or (status and status.started_at_s)):
            changes["started_at_s"] = self._started_at_s(job, status) or now_s
        if state.is_ended:
            changes["ended_at_s"] = (status.ended_at_s if status else None) or now_s
        moved = job.model_copy(update=changes)
        self.ledger.save_job(moved, self._event(f"job_{state.value}", job, message))
        # Only now: a note that failed changes nothing that is known.
        self._failed_at_s.pop(job.job_id, None)
        self._doubt(job.job_id, is_over=True)
        if state is not _S.SUBMITTED:
            self._waited_at_s.pop(job.job_id, None)
        if state.is_ended:
            self._unknown_since_s.pop(job.job_id, None)
            if job.spec.package:
                self._prune_at_s = self.clock.monotonic_s()

    def _started_at_s(self, job: Job, status: JobStatus | None) -> float | None:
        """Return when the driver began, as exactly as Ray lets one know.

        Ray's own start is when it took the job. A driver that was seen waiting since then began
        after that look.
        """
        said_at_s = status.started_at_s if status else None
        waited_at_s = self._waited_at_s.get(job.job_id)
        return max((at_s for at_s in (said_at_s, waited_at_s) if at_s is not None), default=None)

    def _event(self, kind: str, job: Job, message: str) -> Event:
        return Event(
            at_s=self.clock.now_s(),
            epoch=0,
            kind=kind,
            subject=job.job_id,
            message=message,
            facts={"name": job.spec.name} if job.spec.name else {},
        )
