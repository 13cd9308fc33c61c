"""The plan for jobs while it is being made: what was decided so far, and what that leaves free."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from hybrid.core.models import Reason
from hybrid.core.models.work import JobView, Slot
from hybrid.core.policy.jobs.board import Board
from hybrid.core.policy.jobs.terms import Terms
from hybrid.core.policy.plan import Move, Start, Suspend

# Fillers last; then by priority, by share, by deadline and id; of equal ones those that would
# stay in the cloud come first.
QueueKey = tuple[bool, int, float, bool, float, str]

_START_WORDS = {
    "free_at_home": "on-prem GPUs are free",
    "free_rented": "a rented node is free, and it may not wait longer",
    "packed": "small jobs moved together on other on-prem nodes",
    "made_room": "jobs that can wait made room at home",
    "given_way": "less urgent jobs gave way",
}


@dataclass
class Draft:
    """Jobs by where they are, the free capacity, and the actions so far.

    Attributes:
        queue: Waiting jobs by id.
        at_home, in_cloud: Running jobs by id.
        failed_packs: Kinds of work for which no room in one piece could be made.
        stopped: Jobs this plan stops or moves; nothing more happens to them in it.
        kept: Nodes at home that are kept for a late job which nothing can be rented for.
        kept_for: That job's id.
    """

    terms: Terms
    board: Board
    queue: dict[str, JobView] = field(default_factory=dict)
    at_home: dict[str, JobView] = field(default_factory=dict)
    in_cloud: dict[str, JobView] = field(default_factory=dict)
    actions: list[Start | Suspend | Move] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)
    kept: frozenset[str] = frozenset()
    kept_for: str = ""
    failed_packs: set[object] = field(default_factory=set)
    _keys: dict[str, QueueKey] = field(default_factory=dict)
    _may_rent: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, jobs: tuple[JobView, ...], board: Board, terms: Terms) -> Draft:
        """Return an empty plan. The board must have the running jobs' GPUs taken."""
        home, cloud = board.home.total, board.cloud.total
        queue: dict[str, JobView] = {}
        at_home: dict[str, JobView] = {}
        in_cloud: dict[str, JobView] = {}
        # Made for each plan: in one pass, since thousands of jobs are usual.
        for job in jobs:
            slots = job.slots
            if not slots:
                queue[job.job_id] = job
                continue
            node_id = slots[0].node_id
            nodes, jobs_there = (home, at_home) if node_id in home else (cloud, in_cloud)
            # A gang that has lost one of its nodes is about to end: nothing is planned for it.
            if node_id in nodes and (
                len(slots) == 1 or all(slot.node_id in nodes for slot in slots)
            ):
                jobs_there[job.job_id] = job
        return cls(terms, board, queue, at_home, in_cloud)

    @property
    def stops_left(self) -> int:
        """How many more jobs this plan may stop."""
        return self.terms.params.stops_per_tick - len(self.stopped)

    def keep_for(self, job: JobView) -> None:
        """Keep the nodes that will be free first for a job, unless some are kept already."""
        if not self.kept:
            self.kept, self.kept_for = frozenset(self.board.home.emptiest(job)), job.job_id

    def kept_from(self, job: JobView) -> frozenset[str]:
        """Return the nodes that are kept for another job."""
        return frozenset() if job.job_id == self.kept_for else self.kept

    def may_rent(self, job: JobView) -> bool:
        """Return whether money may be spent on a waiting job now."""
        # Asked for several times for each waiting job; the answer is the same for the whole plan.
        may = self._may_rent.get(job.job_id)
        if may is None:
            may = self.terms.may_rent(job) and job.job_id not in self.patient
            self._may_rent[job.job_id] = may
        return may

    @cached_property
    def patient(self) -> frozenset[str]:
        """Jobs that could be rented for, and are let wait since enough others start in time."""
        terms = self.terms
        if not terms.late_budget or terms.late_budget < 1:
            return frozenset()
        able = [
            job
            for job in self.queue.values()
            if not job.is_started and terms.may_rent(job) and not terms.is_last_moment(job)
        ]
        # Those that are late already cost nothing more by waiting on.
        late_s = terms.now_s - terms.params.wait_target_s
        able.sort(
            key=lambda job: (
                job.submitted_at_s > late_s,
                # It would be paid for to its end.
                job.checkpoint is not None,
                -job.gpus,
                job.submitted_at_s,
                job.job_id,
            )
        )
        return frozenset(job.job_id for job in able[: int(terms.late_budget)])

    @cached_property
    def movable(self) -> list[JobView]:
        """Jobs that could move within home when it was first asked, the largest first."""
        terms = self.terms
        able = [
            job
            for job in self.at_home.values()
            if job.checkpoint is not None
            and job.is_single
            and terms.stretch_s(job) > terms.params.move_after_s
            and terms.slack_s(job) >= job.trip_s
            and terms.may_interrupt(job, keep=self.kept_for_exchange(job))
        ]
        return sorted(able, key=lambda job: (-job.gpus, job.job_id))

    def kept_for_exchange(self, job: JobView) -> int:
        """Return how many interruptions a job keeps to change places with one that cannot move."""
        return 2 if job.gpus in self._pinned_sizes else 0

    @cached_property
    def _pinned_sizes(self) -> frozenset[float]:
        least = self.terms.params.exchange_gpus
        running = [*self.queue.values(), *self.at_home.values(), *self.in_cloud.values()]
        return frozenset(
            job.gpus for job in running if job.checkpoint is None and job.gpus >= least
        )

    def key(self, job: JobView) -> QueueKey:
        """Return the order in which waiting jobs get a place at home."""
        # Asked for several times for each waiting job.
        if job.job_id not in self._keys:
            self._keys[job.job_id] = (
                job.is_filler,
                -job.priority,
                self._shares.get(job.job_id, 0.0),
                job.checkpoint is not None,
                self.terms.deadline_s(job),
                job.job_id,
            )
        return self._keys[job.job_id]

    @cached_property
    def _shares(self) -> dict[str, float]:
        """GPUs that a user has, and that earlier jobs of the same user ask for, by job."""
        if not self.terms.params.fair_share:
            return {}
        gpus_by_user: dict[str, float] = {}
        for job in (*self.at_home.values(), *self.in_cloud.values()):
            gpus_by_user[job.user] = gpus_by_user.get(job.user, 0.0) + job.gpus
        shares = {}
        for job in sorted(
            self.queue.values(), key=lambda j: (-j.priority, self.terms.deadline_s(j), j.job_id)
        ):
            shares[job.job_id] = gpus_by_user.get(job.user, 0.0)
            gpus_by_user[job.user] = shares[job.job_id] + job.gpus
        return shares

    def reason(self, code: str, job: JobView) -> Reason:
        """Return why a waiting job starts, with the numbers that decided it."""
        left_s = self.deadline_s_from_now(job)
        return Reason(
            code=code, message=_START_WORDS[code], facts={"gpus": job.gpus, "deadline_in_s": left_s}
        )

    def deadline_s_from_now(self, job: JobView) -> float:
        """Return in how many seconds a waiting job must run; negative when it is late."""
        return round(self.terms.deadline_s(job) - self.terms.now_s, 3)

    def start(self, job: JobView, slots: tuple[Slot, ...], reason: Reason) -> None:
        """Start a waiting job on nodes that are free on the board."""
        nodes = self.board.home if slots[0].node_id in self.board.home.free else self.board.cloud
        nodes.take(job, slots)
        del self.queue[job.job_id]
        # The plan does nothing more to it, so it stays out of `at_home` and `in_cloud`.
        self.actions.append(Start(job_id=job.job_id, slots=slots, reason=reason))

    def suspend(self, job: JobView, reason: Reason) -> None:
        """Stop a job that runs at home."""
        self.board.home.give(job, job.slots)
        del self.at_home[job.job_id]
        self.stopped.add(job.job_id)
        self.actions.append(Suspend(job_id=job.job_id, reason=reason))

    def move(
        self,
        job: JobView,
        slots: tuple[Slot, ...],
        purpose: Literal["pack", "home", "exchange"],
        reason: Reason,
    ) -> None:
        """Move a running job to nodes that are free on the board."""
        home, cloud = self.board.home, self.board.cloud
        if purpose == "home":
            # The rented GPUs are held while it saves: nobody gets them in this plan.
            del self.in_cloud[job.job_id]
        else:
            home.give(job, job.slots)
            del self.at_home[job.job_id]
        (cloud if purpose == "exchange" else home).take(job, slots)
        self.stopped.add(job.job_id)
        self.actions.append(Move(job_id=job.job_id, slots=slots, purpose=purpose, reason=reason))
