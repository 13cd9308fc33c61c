"""Handing jobs to Ray, once each: those with a free place, and those that Ray places itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from hybrid.core.errors import ClusterError, JobError
from hybrid.core.models import Job, JobClass, JobState
from hybrid.core.ports import Clock, JobRunner, JobStatus, Ledger, Packages
from hybrid.jobs import attempts
from hybrid.jobs.keeping import Keeper
from hybrid.jobs.memory import Memory
from hybrid.jobs.params import QueueParams
from hybrid.jobs.requests import Kit, request_of
from hybrid.jobs.rooms import Rooms
from hybrid.jobs.rows import JobBook

_S = JobState
Place: TypeAlias = Callable[[Job], Mapping[str, str]]
"""Where a job's driver may run, as Ray's label selector."""


@dataclass
class Hander:
    """Gives Ray what may start now."""

    ledger: Ledger
    book: JobBook
    runner: JobRunner
    packages: Packages
    clock: Clock
    params: QueueParams
    kit: Kit
    rooms: Rooms
    memory: Memory
    keeper: Keeper

    def submit_all(self, jobs: Sequence[Job], place: Place) -> None:
        """Submit jobs. Raises `ClusterError` at the first that fails, which comes last then."""
        for job in self.memory.failed_last(jobs):
            try:
                self._submit(job, place)
            except ClusterError:
                self.memory.failed(job.job_id)
                raise

    def ready(self) -> list[Job]:
        """Return what can be given to Ray now; places that are gone are given back.

        The most urgent first: what it takes is not free for the next one, which may be meant to
        wait for others on the same node.
        """
        ready = []
        known = cache(self.runner.statuses)  # asked for doubtful jobs only, and once for all
        waiting = [j for j in self.book.live() if j.state is _S.QUEUED and not j.is_cancel_asked]
        for job in sorted((j for j in waiting if j.slots), key=_urgency):
            if self._may_start(job, known):
                self.rooms.take(job)
                ready.append(job)
        return ready + [job for job in waiting if not job.spec.is_queued]

    def _may_start(self, job: Job, known: Callable[[], Mapping[str, JobStatus]]) -> bool:
        if not self.memory.doubts(job):
            return self._has_room(job)
        # A place is taken by the job itself, or by one that still saves: Ray knows, or raises
        # `ClusterError`.
        if not self.rooms.problem(job) or job.ray_id in known():
            self.memory.found(job.job_id)
            return True
        if self.memory.is_missed_for_long(job.job_id):
            self.memory.found(job.job_id)
            self.memory.settle(job.job_id)
        return False

    def _has_room(self, job: Job) -> bool:
        problem = self.rooms.problem(job)
        waited_s = self.clock.now_s() - job.state_at_s
        if not problem:
            return True
        if problem.is_final or waited_s >= self.params.promise_s:
            now_s = self.clock.now_s()
            changed = attempts.unplaced(job, now_s, problem.message)
            self.keeper.save(changed, "job_unplaced", problem.message)
        return False

    def _submit(self, job: Job, place: Place) -> None:
        self.ledger.check_epoch()
        try:
            request = request_of(job, self.params, self.kit)
            for name, content in request.uploads(self.packages):
                # Each time: Ray forgets packages that no job uses, and all with its head.
                self.runner.upload(name, content)
            selector = request.selector if job.spec.is_queued else place(job)
            # From here until the ledger says so, Ray may have it.
            self.memory.doubt(job.job_id)
            self.runner.submit(job.ray_id, request.spec, selector=selector, kit=request.kit)
        except JobError as error:
            self.keeper.move(job, _S.FAILED, str(error))
        else:
            self.keeper.move(job, _S.SUBMITTED, "")


def _urgency(job: Job) -> tuple[bool, int, float, str]:
    is_filler = job.spec.job_class is JobClass.BEST_EFFORT
    return is_filler, -job.spec.priority, job.created_at_s, job.job_id
