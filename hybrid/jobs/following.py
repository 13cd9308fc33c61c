"""Following what Ray says of the jobs that it was given, and letting those end that have to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.core.errors import ClusterError
from hybrid.core.models import Job, JobState
from hybrid.core.ports import Clock, JobRunner, JobStatus
from hybrid.jobs.keeping import Keeper
from hybrid.jobs.memory import Memory
from hybrid.jobs.output import Output
from hybrid.jobs.params import QueueParams
from hybrid.jobs.rooms import Rooms
from hybrid.jobs.rows import JobBook
from hybrid.jobs.stops import Stops

_S = JobState


@dataclass
class Follower:
    """Brings the states of jobs from Ray to the ledger."""

    book: JobBook
    runner: JobRunner
    clock: Clock
    params: QueueParams
    output: Output
    rooms: Rooms
    memory: Memory
    keeper: Keeper
    stops: Stops

    def follow(self, jobs: list[Job]) -> None:
        """Look at jobs that Ray has, or may have. Raises `ClusterError`."""
        statuses: Mapping[str, JobStatus] = self.runner.statuses()
        self._stop_cancelled(jobs, statuses)
        for job in jobs:
            status = statuses.get(job.ray_id)
            if status is None:
                self._miss(job)
            elif status.state is not job.state:
                self._catch_up(job, status)
            else:
                self.memory.found(job.job_id)
                if status.state is _S.SUBMITTED:
                    self.memory.waits(job.job_id)
        self._follow_stops()

    def _follow_stops(self) -> None:
        live = self.book.live()
        self.stops.keep_only({job.ray_id for job in live})
        for job in live:
            if job.state is _S.QUEUED or job.is_cancel_asked:
                continue
            current = job
            deadline_at_s = self.rooms.leaves_at_s(job)
            is_waiting_long = self.clock.now_s() - job.state_at_s >= self.params.pending_s
            if job.stop is None and job.spec.checkpoint and deadline_at_s is not None:
                current = self.stops.leave(job, deadline_at_s)
            elif job.stop is None and job.slots and job.state is _S.SUBMITTED and is_waiting_long:
                self.stops.give_back(job, "Ray did not start it, though its place was free")
                continue
            try:
                self.stops.follow(current)
            except ClusterError:
                return  # its own trouble; the next tick goes on

    def _stop_cancelled(self, jobs: list[Job], statuses: Mapping[str, JobStatus]) -> None:
        for job in self.memory.failed_last(j for j in jobs if j.is_cancel_asked):
            status = statuses.get(job.ray_id)
            if status is not None and status.state.is_ended:
                continue
            try:
                self.stops.stop(job)
            except ClusterError:
                self.memory.failed(job.job_id)
                return  # its own trouble: the states of all are followed all the same

    def _catch_up(self, job: Job, status: JobStatus) -> None:
        is_ended = status.state.is_ended
        is_kept = not is_ended or self.output.keep(job)
        if not is_kept and not self.memory.is_missed_for_long(job.job_id):
            return
        self.memory.found(job.job_id)
        if is_ended:
            self._end(job, status)
        else:
            self.keeper.move(job, status.state, status.message, status)

    def _miss(self, job: Job) -> None:
        if not self.memory.is_missed_for_long(job.job_id):
            return
        if job.is_cancel_asked:
            self.keeper.move(job, _S.CANCELLED, "cancelled; Ray does not know it")
            return
        message = "Ray no longer knows this job: its head was restarted"
        self._end(job, JobStatus(state=_S.FAILED, message=message), is_lost=True)

    def _end(self, job: Job, status: JobStatus, *, is_lost: bool = False) -> None:
        saved = self.stops.saved(job) if job.spec.checkpoint else None
        self.keeper.end(job, status, saved, is_lost=is_lost)
