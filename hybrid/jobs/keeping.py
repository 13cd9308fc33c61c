"""Storing what becomes of jobs: each change with its event, and what is counted of it."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.core.models import Event, Job, JobState
from hybrid.core.ports import Clock, JobStatus
from hybrid.jobs import attempts
from hybrid.jobs.attempts import End, Saved
from hybrid.jobs.memory import Memory
from hybrid.jobs.params import QueueParams
from hybrid.jobs.pulse import Pulse
from hybrid.jobs.rooms import Rooms
from hybrid.jobs.rows import JobBook

_S = JobState


@dataclass
class Keeper:
    """Writes the rows of jobs.

    Attributes:
        pulse: How the queue went of late; counts what is stored.
        is_package_free: Whether a job with a package has ended since somebody looked.
    """

    book: JobBook
    clock: Clock
    params: QueueParams
    pulse: Pulse
    rooms: Rooms
    memory: Memory
    is_package_free: bool = False

    def save(self, job: Job, kind: str, message: str, **facts: object) -> Job:
        """Store a changed job with an event. Raises `LedgerError`."""
        named: dict[str, object] = {"name": job.spec.name} if job.spec.name else {}
        if job.attempt > 1:
            named["attempt"] = job.attempt
        event = Event(
            at_s=self.clock.now_s(),
            epoch=0,
            kind=kind,
            subject=job.job_id,
            message=message,
            facts={**named, **facts},
        )
        self.book.save(job, event)
        return job

    def move(
        self, job: Job, state: JobState, message: str, status: JobStatus | None = None
    ) -> None:
        """Store a state that Ray has told, or that follows without it."""
        now_s = self.clock.now_s()
        if state.is_ended:
            self._store(job, attempts.ended(job, state, message, now_s))
            return
        moved = job.model_copy(update={"state": state, "state_at_s": now_s, "message": message})
        self._store(job, self._with_start(moved, status) if state is _S.RUNNING else moved)

    def end(
        self, job: Job, status: JobStatus, saved: Saved | None, *, is_lost: bool = False
    ) -> None:
        """Store what becomes of a job whose attempt has ended.

        Args:
            job: As it was.
            status: What Ray says of the attempt.
            saved: The last checkpoint that it confirmed.
            is_lost: Ray has lost the attempt; a lost node is seen here.
        """
        at_s = status.ended_at_s or self.clock.now_s()
        is_lost = is_lost or (job.spec.is_queued and self.rooms.is_lost(job))
        end = End(status.state, status.message, at_s, is_lost, "exit code 75" in status.message)
        began = self._with_start(job, status)
        self._store(job, attempts.after(began, end, saved, self.params))

    def _store(self, job: Job, moved: Job) -> None:
        """Store a job's new row; only then is it forgotten what was known of the old one."""
        is_again = moved.state is _S.QUEUED
        is_over = moved.state.is_ended or is_again
        kind = "job_waits_again" if is_again else f"job_{moved.state.value}"
        self.save(moved, kind, moved.message)
        self.memory.stored(job.job_id, is_over=is_over, is_taken=moved.state is _S.SUBMITTED)
        if is_over:
            self._count_end(job, moved)
        if job.started_at_s is None and moved.started_at_s is not None and job.spec.is_queued:
            wait_s = moved.started_at_s - job.created_at_s
            self.pulse.note_start(wait_s, self.clock.now_s())
        if moved.state.is_ended and job.spec.package:
            self.is_package_free = True

    def _count_end(self, job: Job, moved: Job) -> None:
        """Count the end of an attempt, and where the next one goes."""
        if not job.spec.is_queued:
            return
        now_s = self.clock.now_s()
        if moved.state.is_ended:
            self.pulse.note_end(job, now_s, is_home=self.rooms.is_home(job))
        elif moved.slots:
            self.pulse.note_place(moved, now_s, is_home=self.rooms.is_home(moved))
        elif job.stop is not None and job.stop.why == "suspend":
            self.pulse.note_suspension(job)

    def _with_start(self, job: Job, status: JobStatus | None) -> Job:
        """Return a job with when its driver began, if it did."""
        if job.state is not _S.RUNNING and not (status and status.started_at_s):
            return job
        if job.useful_from_s is not None:
            return job
        began_s = self._started_at_s(job, status) or self.clock.now_s()
        load_s = job.spec.checkpoint.load_s if job.spec.checkpoint and job.resume_from else 0.0
        first_s = began_s if job.started_at_s is None else job.started_at_s
        return job.model_copy(update={"started_at_s": first_s, "useful_from_s": began_s + load_s})

    def _started_at_s(self, job: Job, status: JobStatus | None) -> float | None:
        """Return when the driver began, as exactly as Ray lets one know.

        Ray's own start is when it took the job. A driver that was seen waiting since then began
        after that look.
        """
        said_at_s = status.started_at_s if status else None
        waited_at_s = self.memory.waited_at_s(job.job_id)
        return max((at_s for at_s in (said_at_s, waited_at_s) if at_s is not None), default=None)
