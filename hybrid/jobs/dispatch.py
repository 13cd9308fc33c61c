"""Handing jobs to Ray and following them until their end.

Jobs that ask for GPUs wait here for a place that the policy chooses; others are Ray's at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from hybrid.core.errors import ClusterError
from hybrid.core.models import Job, JobState, Node
from hybrid.core.policy.jobs.params import JobParams
from hybrid.core.policy.plan import Action, Host, Move, Start, Suspend
from hybrid.core.ports import Clock, JobLogs, JobRunner, Ledger, Packages
from hybrid.jobs import attempts
from hybrid.jobs.clocked import Clocked
from hybrid.jobs.following import Follower
from hybrid.jobs.handing import Hander, Place
from hybrid.jobs.keeping import Keeper
from hybrid.jobs.memory import Memory
from hybrid.jobs.output import Output
from hybrid.jobs.params import QueueParams
from hybrid.jobs.placing import Absences, entrypoint_selector
from hybrid.jobs.pulse import Pulse
from hybrid.jobs.requests import Kit, no_kit
from hybrid.jobs.rooms import Rooms
from hybrid.jobs.rows import JobBook
from hybrid.jobs.stops import Stops
from hybrid.jobs.views import Views

_S = JobState

# Packages that never got a job are found by time alone.
_PRUNE_EVERY_S = 3600.0

# The jobs of before a restart that the pulse is learned from.
_HISTORY = 2_000


@dataclass
class Dispatcher:
    """Moves jobs from the ledger to Ray, and their states back.

    Attributes:
        book: Live jobs; every change of a job goes through it.
        pulse: How the queue went of late.
    """

    ledger: Ledger
    runner: JobRunner
    packages: Packages
    logs: JobLogs
    clock: Clock
    params: QueueParams = field(default_factory=QueueParams)
    policy: JobParams = field(default_factory=JobParams)
    kit: Kit = no_kit

    def __post_init__(self) -> None:
        """Make the parts; each knows one thing about jobs."""
        clock, params = self.clock, self.params
        self.book = JobBook(self.ledger)
        self.views = Views(params)
        self.pulse = Pulse(self.policy)
        self.rooms = rooms = Rooms()
        self._memory = memory = Memory(clock)
        self._keeper = keeper = Keeper(self.book, clock, params, self.pulse, rooms, memory)
        self.stops = Stops(self.runner, clock, params, keeper.save, self._stop)
        self._hander = Hander(
            ledger=self.ledger,
            book=self.book,
            runner=self.runner,
            packages=self.packages,
            clock=clock,
            params=params,
            kit=self.kit,
            rooms=rooms,
            memory=memory,
            keeper=keeper,
        )
        self._follower = Follower(
            book=self.book,
            runner=self.runner,
            clock=clock,
            params=params,
            output=Output(self.runner, self.logs),
            rooms=rooms,
            memory=memory,
            keeper=keeper,
            stops=self.stops,
        )
        self._clocked = Clocked(self.book)
        self._absences = Absences(clock)
        self._prune_at_s = clock.monotonic_s()

    def start(self) -> None:
        """Learn from history; call once before the first step."""
        self.pulse.look_back(list(self.ledger.jobs(limit=_HISTORY)))
        self._clocked.look_back(self.clock.now_s())

    def follow_clock(self, by_s: float) -> None:
        """Move the instants of live jobs: the wall clock was set by so much.

        Call `settle_clock` before, so that nothing is pending, and afterwards.
        """
        if by_s:
            self._clocked.follow(by_s)
            self._memory.forget_waits()
            self.pulse.follow_clock(by_s)

    def settle_clock(self) -> None:
        """Store the moved instants. Raises `LedgerError`; call again then."""
        self._clocked.settle()

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
        if self._keeper.is_package_free or self.clock.monotonic_s() >= self._prune_at_s:
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
                ready = [j for j in self._hander.ready() if j.spec.is_queued]
                self._hander.submit_all(ready, lambda _: {})

    def _place(self, job: Job, action: Start) -> None:
        reason = action.reason
        placed = attempts.placed(job, action.slots, self.clock.now_s(), reason.message)
        facts = {"reason_code": reason.code, "to": [list(s) for s in action.slots], **reason.facts}
        self._keeper.save(placed, "job_placed", reason.message, **facts)
        is_home = self.rooms.is_home(placed)
        self.pulse.note_place(placed, self.clock.now_s(), is_home=is_home)

    def _work(self, place: Place, *, is_ray_up: bool) -> None:
        jobs = self.book.live()
        queued = [j for j in jobs if j.state is _S.QUEUED]
        self.pulse.see(j for j in queued if j.spec.is_queued)
        self._memory.begin(queued)
        if not jobs:
            return
        started = [j for j in jobs if j.state is not _S.QUEUED]
        for job in queued:
            if job.is_cancel_asked and self._memory.doubts(job):
                started.append(job)
            elif job.is_cancel_asked:
                self._keeper.move(job, _S.CANCELLED, "cancelled before it started")
        if not is_ray_up:
            return
        try:
            if started:
                self._follower.follow(started)
            self._hander.submit_all(self._hander.ready(), place)
        except ClusterError:
            # The dashboard is not up yet, or is restarting. The ledger keeps the jobs.
            return

    def _prune(self) -> None:
        """Forget the packages that no live job needs."""
        self.packages.keep_only({job.spec.package for job in self.book.live()})
        self._keeper.is_package_free = False
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
                self._keeper.save(asked, "job_cancel_asked", f"by {owner}")

    def close_all(self, message: str) -> None:
        """Close every live job: Ray has ended, and its drivers with it."""
        for job in self.book.live():
            self._keeper.move(job, _S.CANCELLED, message)

    def _stop(self, job: Job) -> None:
        self.ledger.check_epoch()
        self.runner.stop(job.ray_id)
