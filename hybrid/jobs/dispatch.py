"""Handing jobs to Ray and following them until their end.

Jobs that ask for GPUs wait here for a place that the policy chooses; others are Ray's at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from hybrid.core.errors import ClusterError, JobError
from hybrid.core.models import Event, Job, JobState, Node
from hybrid.core.policy.jobs.params import JobParams
from hybrid.core.policy.plan import Action, Host, Move, Start, Suspend
from hybrid.core.ports import Clock, JobLogs, JobRunner, JobStatus, Ledger, Packages
from hybrid.jobs import attempts
from hybrid.jobs.attempts import End
from hybrid.jobs.output import Output
from hybrid.jobs.params import QueueParams
from hybrid.jobs.placing import Absences, entrypoint_selector
from hybrid.jobs.pulse import Pulse
from hybrid.jobs.requests import Kit, no_kit, request_of
from hybrid.jobs.rooms import Rooms
from hybrid.jobs.rows import JobBook
from hybrid.jobs.stops import Stops
from hybrid.jobs.views import Views

_S = JobState
Place: TypeAlias = Callable[[Job], Mapping[str, str]]
"""Where a job's driver may run, as Ray's label selector."""

# Ray answers for a job a moment after it took it; a job unknown for longer is lost.
_LOST_AFTER_S = 60.0

# Packages that never got a job are found by time alone.
_PRUNE_EVERY_S = 3600.0

# Corrections of less are the daily work of NTP.
_AHEAD_S = 5.0

# The jobs of before a restart that the pulse is learned from.
_HISTORY = 2_000


@dataclass
class Dispatcher:
    """Moves jobs from the ledger to Ray, and their states back.

    Attributes:
        book: Live jobs; every change of a job goes through it.
        pulse: How the queue went of late.
        _doubtful: Queued jobs that Ray may have all the same: its answer was lost, it could not
            be noted, or a controller crashed between the submission and its note. `None` before
            the first step, when all of them are.
        _failed_at_s: When a job's submission or stop last failed.
        _waited_at_s: When Ray last said of a job that its driver waits.
        _moved: Jobs before and after the clock was set, until that is stored.
    """

    ledger: Ledger
    runner: JobRunner
    packages: Packages
    logs: JobLogs
    clock: Clock
    params: QueueParams = field(default_factory=QueueParams)
    policy: JobParams = field(default_factory=JobParams)
    kit: Kit = no_kit
    _unknown_since_s: dict[str, float] = field(default_factory=dict)
    _failed_at_s: dict[str, float] = field(default_factory=dict)
    _waited_at_s: dict[str, float] = field(default_factory=dict)
    _doubtful: set[str] | None = None
    _moved: dict[str, tuple[Job, Job]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make what only the dispatcher needs."""
        self.book = JobBook(self.ledger)
        self.views = Views(self.params)
        self.pulse = Pulse(self.policy)
        self.output = Output(self.runner, self.logs)
        self.stops = Stops(self.runner, self.clock, self.params, self._save, self._stop)
        self.rooms = Rooms()
        self._absences = Absences(self.clock)
        self._prune_at_s = self.clock.monotonic_s()

    def start(self) -> None:
        """Learn from history; call once before the first step.

        Jobs of the future say that the clock was set back while no controller ran.
        """
        self.pulse.look_back(list(self.ledger.jobs(limit=_HISTORY)))
        now_s = self.clock.now_s()
        for job in self.book.live():
            ahead_s = attempts.latest_s(job) - now_s
            if ahead_s >= _AHEAD_S:
                self._moved[job.job_id] = (job, attempts.moved_by(job, -ahead_s))

    def follow_clock(self, by_s: float) -> None:
        """Move the instants of live jobs: the wall clock was set by so much.

        Call `settle_clock` before, so that nothing is pending, and afterwards.
        """
        if not by_s:
            return
        for job in self.book.live():
            self._moved[job.job_id] = (job, attempts.moved_by(job, by_s))
        self._waited_at_s.clear()

    def settle_clock(self) -> None:
        """Store the moved instants. Raises `LedgerError`; call again then."""
        for job_id, (before, after) in list(self._moved.items()):
            told = self.book.get(job_id)
            if told is not None and not told.state.is_ended:
                moved = attempts.with_move(told, before, after)
                if moved != told:
                    self.book.save(moved)
            del self._moved[job_id]

    # --- each tick ------------------------------------------------------------------------

    def step(
        self,
        nodes: tuple[Node, ...],
        *,
        is_ray_up: bool,
        hosts: Iterable[Host] = (),
        has_clouds: bool = True,
        leaving: Mapping[str, float] | None = None,
    ) -> None:
        """Do what can be done for every live job now.

        Args:
            nodes: What Ray has.
            is_ray_up: Whether Ray answers.
            hosts: What is configured at home, whether it is a node yet or not.
            has_clouds: Whether there is any cloud to send a driver to.
            leaving: When the nodes will end that have to, by node id.
        """
        expected = self._absences.expected(nodes, hosts, is_ray_up=is_ray_up)
        self.rooms.look(nodes, leaving or {})
        self._work(
            lambda job: entrypoint_selector(job, nodes, expected=expected, has_clouds=has_clouds),
            is_ray_up=is_ray_up,
        )
        if self.clock.monotonic_s() >= self._prune_at_s:
            self._prune()

    def carry_out(self, actions: Iterable[Action]) -> None:
        """Store what a plan wants of jobs, and do what can be done of it at once.

        Stops come first, so that what is kept for a start is on its way to be free. The rest is
        done in the next steps.
        """
        wanted = [a for a in actions if isinstance(a, Start | Suspend | Move)]
        for action in sorted(wanted, key=lambda a: isinstance(a, Start)):
            job = self.book.get(action.job_id)
            if job is None or job.state.is_ended or job.is_cancel_asked or job.stop:
                continue
            if isinstance(action, Start):
                if job.state is _S.QUEUED and not job.slots:
                    self._place(job, action)
            elif job.state is not _S.QUEUED:
                try:
                    self.stops.begin(job, action)
                except ClusterError:
                    return  # nothing was stored; the next plan asks again
        if any(isinstance(action, Start) for action in wanted):
            with suppress(ClusterError):
                self._submit_all([j for j in self._ready() if j.spec.is_queued], lambda _: {})

    def _place(self, job: Job, action: Start) -> None:
        reason = action.reason
        placed = attempts.placed(job, action.slots, self.clock.now_s(), reason.message)
        facts = {"reason_code": reason.code, "to": [list(s) for s in action.slots], **reason.facts}
        self._save(placed, "job_placed", reason.message, **facts)
        is_home = self.rooms.is_home(placed)
        self.pulse.note_place(placed, self.clock.now_s(), is_home=is_home)

    def _work(self, place: Place, *, is_ray_up: bool) -> None:
        jobs = self.book.live()
        queued = [j for j in jobs if j.state is _S.QUEUED]
        self.pulse.see(j for j in queued if j.spec.is_queued)
        if self._doubtful is None:
            self._doubtful = {j.job_id for j in queued if j.slots or not j.spec.is_queued}
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
            self._submit_all(self._ready(), place)
        except ClusterError:
            # The dashboard is not up yet, or is restarting. The ledger keeps the jobs.
            return

    def _ready(self) -> list[Job]:
        """Return what can be given to Ray now; places that are gone are given back."""
        ready = []
        known = cache(self.runner.statuses)  # asked for doubtful jobs only, and once for all
        for job in self.book.live():
            if job.state is not _S.QUEUED or job.is_cancel_asked:
                continue
            if not job.spec.is_queued or (job.slots and self._may_start(job, known)):
                ready.append(job)
        return ready

    def _may_start(self, job: Job, known: Callable[[], Mapping[str, JobStatus]]) -> bool:
        if not self._is_doubtful(job):
            return self._has_room(job)
        # A place is taken by the job itself, or by one that still saves: Ray knows, or raises
        # `ClusterError`.
        if not self.rooms.problem(job) or job.ray_id in known():
            self._unknown_since_s.pop(job.job_id, None)
            return True
        if self._is_missed_for_long(job):
            self._unknown_since_s.pop(job.job_id, None)
            self._doubt(job.job_id, is_over=True)
        return False

    def _has_room(self, job: Job) -> bool:
        problem = self.rooms.problem(job)
        waited_s = self.clock.now_s() - job.state_at_s
        if not problem:
            return True
        if problem.is_final or waited_s >= self.params.promise_s:
            now_s = self.clock.now_s()
            changed = attempts.unplaced(job, now_s, problem.message)
            self._save(changed, "job_unplaced", problem.message)
        return False

    def _prune(self) -> None:
        """Forget the packages that no live job needs."""
        self.packages.keep_only({job.spec.package for job in self.book.live()})
        self._prune_at_s = self.clock.monotonic_s() + _PRUNE_EVERY_S

    # --- the end of all -------------------------------------------------------------------

    def cancel_waiting(self, owner: str) -> None:
        """Ask for the end of the jobs that wait for a place: none will be given any more."""
        self._cancel((j for j in self.book.live() if j.state is _S.QUEUED), owner)

    def cancel_all(self, owner: str) -> None:
        """Ask for the end of every live job."""
        self._cancel(self.book.live(), owner)

    def _cancel(self, jobs: Iterable[Job], owner: str) -> None:
        for job in jobs:
            if not job.is_cancel_asked:
                asked = job.model_copy(update={"is_cancel_asked": True})
                self._save(asked, "job_cancel_asked", f"by {owner}")

    def close_all(self, message: str) -> None:
        """Close every live job: Ray has ended, and its drivers with it."""
        for job in self.book.live():
            self._move(job, _S.CANCELLED, message)

    # --- to Ray ---------------------------------------------------------------------------

    def _submit_all(self, jobs: Sequence[Job], place: Place) -> None:
        for job in self._failed_last(jobs):
            try:
                self._submit(job, place)
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

    def _is_doubtful(self, job: Job) -> bool:
        return job.job_id in (self._doubtful or ())

    def _doubt(self, job_id: str, *, is_over: bool = False) -> None:
        doubtful = self._doubtful or set()
        self._doubtful = doubtful - {job_id} if is_over else doubtful | {job_id}

    def _submit(self, job: Job, place: Place) -> None:
        self.ledger.check_epoch()
        try:
            request = request_of(job, self.params, self.kit)
            for name, content in request.uploads(self.packages):
                # Each time: Ray forgets packages that no job uses, and all with its head.
                self.runner.upload(name, content)
            selector = request.selector if job.spec.is_queued else place(job)
            # From here until the ledger says so, Ray may have it.
            self._doubt(job.job_id)
            self.runner.submit(job.ray_id, request.spec, selector=selector, kit=request.kit)
        except JobError as error:
            self._move(job, _S.FAILED, str(error))
        else:
            self._move(job, _S.SUBMITTED, "")
            self.rooms.take(job)

    def _stop(self, job: Job) -> None:
        self.ledger.check_epoch()
        self.runner.stop(job.ray_id)

    # --- from Ray -------------------------------------------------------------------------

    def _follow(self, jobs: list[Job]) -> None:
        statuses: Mapping[str, JobStatus] = self.runner.statuses()
        self._stop_cancelled(jobs, statuses)
        for job in jobs:
            status = statuses.get(job.ray_id)
            if status is None:
                self._miss(job)
            elif status.state is not job.state:
                self._catch_up(job, status)
            else:
                self._unknown_since_s.pop(job.job_id, None)
                if status.state is _S.SUBMITTED:
                    self._waited_at_s[job.job_id] = self.clock.now_s()
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
        for job in self._failed_last(j for j in jobs if j.is_cancel_asked):
            status = statuses.get(job.ray_id)
            if status is not None and status.state.is_ended:
                continue
            try:
                self._stop(job)
            except ClusterError:
                self._note_failure(job)
                return  # its own trouble: the states of all are followed all the same

    def _catch_up(self, job: Job, status: JobStatus) -> None:
        is_ended = status.state.is_ended
        if is_ended and not self.output.keep(job) and not self._is_missed_for_long(job):
            return
        self._unknown_since_s.pop(job.job_id, None)
        if is_ended:
            self._end(job, status)
        else:
            self._move(job, status.state, status.message, status)

    def _miss(self, job: Job) -> None:
        if not self._is_missed_for_long(job):
            return
        if job.is_cancel_asked:
            self._move(job, _S.CANCELLED, "cancelled; Ray does not know it")
            return
        message = "Ray no longer knows this job: its head was restarted"
        self._end(job, JobStatus(state=_S.FAILED, message=message), is_lost=True)

    def _is_missed_for_long(self, job: Job) -> bool:
        now_s = self.clock.monotonic_s()
        return now_s - self._unknown_since_s.setdefault(job.job_id, now_s) >= _LOST_AFTER_S

    # --- rows -----------------------------------------------------------------------------

    def _end(self, job: Job, status: JobStatus, *, is_lost: bool = False) -> None:
        """Store what becomes of a job whose attempt has ended."""
        at_s = status.ended_at_s or self.clock.now_s()
        saved = self.stops.saved(job) if job.spec.checkpoint else None
        is_lost = is_lost or (job.spec.is_queued and self.rooms.is_lost(job))
        end = End(status.state, status.message, at_s, is_lost, "exit code 75" in status.message)
        began = self._with_start(job, status)
        self._store(job, attempts.after(began, end, saved, self.params))

    def _move(
        self, job: Job, state: JobState, message: str, status: JobStatus | None = None
    ) -> None:
        """Store a state that Ray has told, or that follows without it."""
        now_s = self.clock.now_s()
        if state.is_ended:
            self._store(job, attempts.ended(job, state, message, now_s))
            return
        moved = job.model_copy(update={"state": state, "state_at_s": now_s, "message": message})
        self._store(job, self._with_start(moved, status) if state is _S.RUNNING else moved)

    def _store(self, job: Job, moved: Job) -> None:
        """Store a job's new row; only then is it forgotten what was known of the old one."""
        is_again = moved.state is _S.QUEUED
        kind = "job_waits_again" if is_again else f"job_{moved.state.value}"
        self._save(moved, kind, moved.message)
        self._failed_at_s.pop(job.job_id, None)
        self._doubt(job.job_id, is_over=True)
        if moved.state is not _S.SUBMITTED:
            self._waited_at_s.pop(job.job_id, None)
        if moved.state.is_ended or is_again:
            self._unknown_since_s.pop(job.job_id, None)
            self._count_end(job, moved)
        if job.started_at_s is None and moved.started_at_s is not None and job.spec.is_queued:
            wait_s = moved.started_at_s - job.created_at_s
            self.pulse.note_start(wait_s, self.clock.now_s())
        if moved.state.is_ended and job.spec.package:
            self._prune_at_s = self.clock.monotonic_s()

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
        waited_at_s = self._waited_at_s.get(job.job_id)
        return max((at_s for at_s in (said_at_s, waited_at_s) if at_s is not None), default=None)

    def _save(self, job: Job, kind: str, message: str, **facts: object) -> Job:
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
