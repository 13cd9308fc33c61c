"""GPUs at home that services borrow: how many, decided by the policy for services, and kept.

Ray Serve starts and ends the replicas. So to lend is to let batch work save and leave, and to keep
the queue off what that frees until a replica holds it. A loan is over when Serve has ended the
replicas that it was for; batch work then takes its place by the usual rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hybrid.core.models import Demand, Job, Shape
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.lend import lend, lent_words
from hybrid.core.policy.jobs.plan_jobs import board_of
from hybrid.core.policy.jobs.terms import terms_of
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Loan, Snapshot
from hybrid.core.policy.services import (
    Borrow,
    GiveBack,
    Rate,
    ServiceMemory,
    ServiceParams,
    ServiceView,
    Why,
    decide_services,
)
from hybrid.core.policy.services.rates import known
from hybrid.core.slo import Judgement, Load, Slo, SloState, excess, need_count

_MOST_RATES = 64
_BLOCKED = "Serve has not asked for the replicas all the while, so nothing is borrowed any more"


@dataclass(frozen=True)
class Borrower:
    """A service that may borrow.

    Attributes:
        shape: What one replica needs of a node.
        most_count: For at most so many replicas.
        replica_limit: It has no more replicas than this, with loans or without.
        priority: They rank like a waiting job of this priority.
    """

    name: str
    slo: Slo
    shape: Shape
    most_count: int
    replica_limit: int
    priority: int


@dataclass
class Lending:
    """The loans of one service. Only the loop's thread uses it.

    Lost when the controller restarts: then replicas on loan count as the service's own.

    Attributes:
        wanted: Replicas that the policy wants on loan.
        own: Replicas that run without a loan, as of the last look without one.
        held: Replicas on loan that run. Where replicas run is not known, so one that came up on a
            rented node while a loan was on its way is counted as well.
        expected: Replicas on loan that will get GPUs at home: nothing is rented for them.
        unplaced: Those of them for which no job is stopping yet.
        why: One sentence on the last step.
    """

    borrower: Borrower
    tell: Callable[[str, str, str], None]
    wanted: int = 0
    own: int = 0
    held: int = 0
    expected: int = 0
    unplaced: int = 0
    why: str = ""
    _replica_rps: float | None = None
    _rates: deque[Rate] = field(default_factory=lambda: deque(maxlen=_MOST_RATES))
    _memory: ServiceMemory = field(default_factory=ServiceMemory)
    _asked_at_s: float | None = None
    _is_blocked: bool = False

    @cached_property
    def params(self) -> ServiceParams:
        """The thresholds for loans: of a rate older than what it is measured over, nothing is."""
        fresh_s = max(ServiceParams().fresh_s, 2 * self.borrower.slo.step_s)
        return ServiceParams(fresh_s=fresh_s)

    @property
    def count(self) -> int:
        """Replicas on loan, those that have no place yet included."""
        return max(self.wanted, self.held)

    def loan(self) -> Loan | None:
        """Return what is to be kept free or freed for it now."""
        if not self.unplaced:
            return None
        one = self.borrower
        return Loan(service=one.name, shape=one.shape, count=self.unplaced, priority=one.priority)

    def look(
        self,
        judgement: Judgement,
        load: Load,
        snapshot: Snapshot,
        jobs: Iterable[Job],
        params: PolicyParams,
        *,
        patience_s: float,
        now_s: float,
    ) -> None:
        """Decide anew.

        Args:
            judgement: Whether the promise holds.
            load: Replicas and requests.
            snapshot: What there is, Ray's waiting work as it says itself.
            jobs: Live jobs; those that are stopping for the service free GPUs.
            params: The thresholds.
            patience_s: So long Serve may take to ask for the replicas.
            now_s: Now, by the judgement's clock.
        """
        if load.running is None or load.target is None or _is_blind(snapshot):
            return  # Unknown: nothing grows, and nothing shrinks.
        self._count(load.running)
        self._learn(judgement, load.running, snapshot.now_s)
        asked = max(load.running, load.target)
        waiting = waiting_count(snapshot.demands, self.borrower.shape)
        if judgement.state is SloState.MET:
            self._is_blocked = False
        self._give_up_unused(judgement, asked, patience_s, snapshot.now_s)
        starting = max(0, asked - load.running - waiting)
        self._decide(judgement, load, snapshot, jobs, params, starting=starting, now_s=now_s)
        # Once the promise is kept, nobody is stopped for replicas that Serve does not ask for.
        is_met = judgement.state is SloState.MET
        unasked = 0 if is_met else max(0, self.own + self.count - asked)
        self.expected = min(max(0, self.wanted - self.held), waiting + unasked)
        self.unplaced = max(0, self.expected - self._coming(jobs))

    # --- what is seen ---------------------------------------------------------------------

    def _count(self, running: int) -> None:
        if not self.count:
            self.own = running
        # Those that go are taken for borrowed ones; those that come beyond the loans are not.
        self.own = min(self.own, running)
        self.held = min(running - self.own, self.count)
        self.own = running - self.held

    def _learn(self, judgement: Judgement, running: int, now_s: float) -> None:
        """Note the rate; while the promise is broken a replica serves all that it can."""
        rate_rps, step_s = known(judgement.rate_rps), self.borrower.slo.step_s
        if rate_rps is None:
            return
        if judgement.state is SloState.BROKEN and running and rate_rps > 0:
            is_new = not self.count
            before_rps = 0.0 if is_new or self._replica_rps is None else self._replica_rps
            self._replica_rps = max(before_rps, rate_rps / running)
        if not self._rates or now_s - self._rates[-1].end_at_s >= step_s:
            self._rates.append(Rate(end_at_s=now_s, span_s=step_s, rps=rate_rps))

    def _coming(self, jobs: Iterable[Job]) -> int:
        """Return for how many replicas jobs are stopping; their rows survive a restart."""
        words, size = lent_words(self.borrower.name), self.borrower.shape.get("GPU", 0.0)
        freed = sum(j.spec.gpus for j in jobs if j.stop is not None and j.stop.message == words)
        return int(freed / size + 1e-6) if size else 0

    def _give_up_unused(
        self, judgement: Judgement, asked: int, patience_s: float, now_s: float
    ) -> None:
        if not self.wanted or asked > self.own:
            self._asked_at_s = None
            return
        if self._asked_at_s is None:
            self._asked_at_s = now_s
        if now_s - self._asked_at_s > patience_s and judgement.state is not SloState.UNKNOWN:
            self.wanted, self._is_blocked, self._asked_at_s = 0, True, None
            self._say("loan_ended", _BLOCKED)

    # --- what follows ---------------------------------------------------------------------

    def _decide(
        self,
        judgement: Judgement,
        load: Load,
        snapshot: Snapshot,
        jobs: Iterable[Job],
        params: PolicyParams,
        *,
        starting: int,
        now_s: float,
    ) -> None:
        if self._replica_rps is None:
            return
        is_known = judgement.state is not SloState.UNKNOWN
        room = self._room(snapshot, params) + self._coming(jobs) + starting
        most = max(0, min(self.held + room, self._most()))
        view = ServiceView(
            service=self.borrower.name,
            now_s=snapshot.now_s,
            wait_slo_s=self.borrower.slo.target_ms / 1000,
            replica_rps=self._replica_rps,
            rates=tuple(self._rates) if is_known else (),
            backlog=excess(judgement, load, self.borrower.slo) if is_known else None,
            dispersion=self.params.assumed_dispersion,
            home_count=self.own,
            borrowed_count=self.held,
            borrowing_count=max(0, self.wanted - self.held),
            borrowable_count=most,
            memory=self._memory,
        )
        plan = decide_services(view, self.params)
        self._memory = plan.memory
        is_broken = judgement.state is SloState.BROKEN
        for action in plan.actions:
            is_recalled = action.reason.code == Why.LOAN_RECALLED
            if isinstance(action, GiveBack) and (is_recalled or not is_broken):
                self.wanted = max(0, self.count - action.count)
                self._say("loan_ended", action.reason.message)
            # Lending is for promises that are broken: batch work is not stopped for a maybe.
            elif isinstance(action, Borrow) and is_broken and not self._is_blocked:
                self.wanted = self.count + action.count
                self._say("loan_begun", action.reason.message)
        if is_broken and not self._is_blocked:
            self._borrow_for_breach(judgement, load, most, now_s=now_s)

    def _borrow_for_breach(
        self, judgement: Judgement, load: Load, most: int, *, now_s: float
    ) -> None:
        """Borrow for what Serve asks for and for what its own policy will ask for next."""
        slo = self.borrower.slo
        need = max(need_count(judgement, load, slo, now_s=now_s) or 0, load.target or 0)
        wanted = min(most, need - self.own)
        if wanted > self.count:
            self.wanted = wanted
            self._say("loan_begun", f"{judgement.why}: it takes {need} replicas")

    def _most(self) -> int:
        """Return for how many replicas there may be loans, whatever there is."""
        return min(self.borrower.most_count, self.borrower.replica_limit - self.own)

    def _room(self, snapshot: Snapshot, params: PolicyParams) -> int:
        """Return for how many more replicas there are GPUs at home, free or to be freed."""
        one = self.borrower
        left = self._most() - self.held
        if left <= 0:
            return 0
        loan = Loan(service=one.name, shape=one.shape, count=left, priority=one.priority)
        draft = Draft.of(snapshot.jobs, board_of(snapshot), terms_of(snapshot, params.jobs))
        return lend(draft, (loan,))[one.name]

    def _say(self, kind: str, why: str) -> None:
        if why != self.why:
            self.why = why
            self.tell(kind, self.borrower.name, why)


def waiting_count(demands: Sequence[Demand], shape: Shape) -> int:
    """Return how many requests wait in Ray that ask for what a replica asks for."""
    return sum(demand.count for demand in demands if asks_same(demand.shape, shape))


def asks_same(asked: Shape, shape: Shape) -> bool:
    """Return whether a request asks for the GPUs and CPUs of a replica."""
    return all(asked.get(name, 0.0) == shape.get(name, 0.0) for name in ("GPU", "CPU"))


def _is_blind(snapshot: Snapshot) -> bool:
    return any(source.name == "ray" for source in snapshot.blind)
