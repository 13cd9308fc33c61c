"""The promises of services about latency: whether they hold, and what a breach wants rented."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hybrid.core.labels import sites
from hybrid.core.models import Demand, Job, Offer, Selector, Shape
from hybrid.core.policy.lending import Borrower, Lending, asks_same
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Loan, Snapshot
from hybrid.core.ports import Clock
from hybrid.core.slo import Ahead, Judgement, Load, Slo, SloState, ahead
from hybrid.core.views import SloView

_ASSUMED_BOOT_S = 480.0
_MOST_LOADS = 200
_UNUSED = "Serve has not asked for more replicas all the while, so no node is rented ahead any more"


@dataclass(frozen=True)
class Watched:
    """A service, and how to ask how it is.

    Attributes:
        borrow_count: GPUs at home are borrowed for at most so many replicas.
        borrow_priority: The replicas rank like a waiting job of this priority then.
        judge: Returns its judgement and its load at once, whatever the source does.
        shape: What one replica needs of a node.
        most_count: Nodes are rented ahead for at most so many replicas.
    """

    name: str
    app: str
    deployment: str
    slo: Slo
    shape: Shape
    most_count: int
    judge: Callable[[], tuple[Judgement, Load]]
    borrow_count: int = 0
    borrow_priority: int = 60


@dataclass
class _Watch:
    """What is known of one service.

    Attributes:
        loads: Requests in the system over the last window, by time.
        ahead: What nodes are wanted for before their turn.
        extra: Those of it that Serve has not asked for.
        begun_s: When the first node of this breach was wanted, and the replicas then.
        where: Where its replicas may run, as their own requests said last.
    """

    judgement: Judgement = field(default_factory=Judgement)
    load: Load = field(default_factory=Load)
    loads: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_MOST_LOADS))
    ahead: Ahead = field(default_factory=Ahead)
    extra: int = 0
    begun: tuple[float, int] | None = None
    note: str = ""
    where: tuple[Selector, ...] = ()
    since_at_s: float | None = None


class SloWatch:
    """Keeps the last judgement of every service. Only the loop's thread uses it.

    Args:
        services: What is watched.
        clock: Time.
        tell: Records that a service came into another state: kind, name, sentence.
    """

    def __init__(
        self,
        services: Sequence[Watched] = (),
        clock: Clock | None = None,
        tell: Callable[[str, str, str], None] = lambda _kind, _name, _why: None,
    ) -> None:
        self._services = tuple(services)
        self._clock = clock
        self._tell = tell
        self._watches = {service.name: _Watch() for service in services}
        self._boot_s = _ASSUMED_BOOT_S
        self._lending = {one.name: _lending(one, tell) for one in services if one.borrow_count}

    def look(self, offers: Sequence[Offer], boot_s_by_offer: Mapping[str, float]) -> None:
        """Take the judgements of this moment; waits for nothing.

        Args:
            offers: What can be rented.
            boot_s_by_offer: How long boots took.
        """
        boots = (boot_s_by_offer.get(o.offer_id, o.boot_s) for o in offers)
        self._boot_s = min(boots, default=_ASSUMED_BOOT_S)
        for service in self._services:
            self._look_at(service, self._watches[service.name], self._boot_s)

    @property
    def may_lend(self) -> bool:
        """Whether any service may borrow GPUs of batch work."""
        return bool(self._lending)

    def lend(self, snapshot: Snapshot, jobs: Sequence[Job], params: PolicyParams) -> None:
        """Decide what services borrow at home.

        Args:
            snapshot: What there is, with all that waits in Ray.
            jobs: Live jobs.
            params: The thresholds.
        """
        for service in self._services:
            lending = self._lending.get(service.name)
            if lending is not None:
                watch = self._watches[service.name]
                patience_s = self._boot_s + 2 * service.slo.window_s
                lending.look(
                    watch.judgement,
                    watch.load,
                    snapshot,
                    jobs,
                    params,
                    patience_s=patience_s,
                    now_s=self._clock.monotonic_s() if self._clock else 0.0,
                )

    def loans(self) -> tuple[Loan, ...]:
        """Return what is to be kept free, or freed, at home for services."""
        found = (lending.loan() for lending in self._lending.values())
        return tuple(loan for loan in found if loan is not None)

    def wanted(self, demands: tuple[Demand, ...]) -> tuple[Demand, ...]:
        """Return waiting work with what broken promises want at once.

        Replicas of a service that wait in Ray need not wait their turn; those that it will need
        and has not asked for yet are added. The former are known by what they ask for.
        """
        for service in self._services:
            watch = self._watches[service.name]
            lending = self._lending.get(service.name)
            expected = lending.expected if lending else 0
            if watch.ahead.count or expected:
                demands = _hastened(demands, service, watch, expected)
        return demands

    def views(self) -> tuple[SloView, ...]:
        """Return every service as people see it."""
        return tuple(
            _view(service, self._watches[service.name], self._lending.get(service.name))
            for service in self._services
        )

    def _look_at(self, service: Watched, watch: _Watch, boot_s: float) -> None:
        assert self._clock is not None  # noqa: S101  # there are services, so there is a clock
        now_s = self._clock.monotonic_s()
        before, (watch.judgement, watch.load) = watch.judgement, service.judge()
        if watch.since_at_s is None or before.state is not watch.judgement.state:
            since_s = watch.judgement.since_s
            watch.since_at_s = self._clock.now_s() - (now_s - since_s if since_s else 0.0)
        if watch.judgement.known_state is not before.known_state:
            state = watch.judgement.state.value
            self._tell(f"service_{state}", service.name, watch.judgement.why)
        if watch.load.in_system is not None:
            watch.loads.append((now_s, watch.load.in_system))
        if watch.judgement.state is SloState.UNKNOWN:
            # Nothing shrinks: what is on its way for a breach stays wanted.
            if watch.judgement.known_state is not SloState.BROKEN:
                watch.ahead, watch.begun, watch.note = Ahead(), None, ""
            return
        self._think_ahead(service, watch, boot_s, now_s)

    def _think_ahead(self, service: Watched, watch: _Watch, boot_s: float, now_s: float) -> None:
        before_s, before = _earlier(watch, now_s, service.slo.window_s / 2)
        found = ahead(
            watch.judgement,
            watch.load,
            service.slo,
            before=before,
            before_s=before_s,
            boot_s=boot_s,
            most_count=service.most_count,
            now_s=now_s,
        )
        running = watch.load.running or 0
        asked = max(watch.load.target or 0, running)
        if watch.judgement.state is SloState.MET:
            watch.begun, watch.note = None, ""
        elif found.count and watch.begun is None:
            watch.begun = (now_s, asked)
        watch.extra = max(0, running + found.count - asked)
        if watch.begun is not None:
            # A node that nobody uses costs money for nothing, however slow the service is.
            patience_s = boot_s + 2 * service.slo.window_s
            is_unused = now_s - watch.begun[0] > patience_s and asked <= watch.begun[1]
            watch.note = _UNUSED if is_unused else ""
            if is_unused:
                found = Ahead()
        if found.count == watch.ahead.count:
            # The same words as long as they mean the same: a decision is news when it changes.
            found = replace(found, why=watch.ahead.why)
        watch.ahead = found


def _earlier(watch: _Watch, now_s: float, span_s: float) -> tuple[float, float | None]:
    """Return how long ago requests in the system were counted, at least `span_s`, and how many."""
    for at_s, number in reversed(watch.loads):
        if now_s - at_s >= span_s:
            return now_s - at_s, number
    return 0.0, None


def _lending(service: Watched, tell: Callable[[str, str, str], None]) -> Lending:
    borrower = Borrower(
        name=service.name,
        slo=service.slo,
        shape=service.shape,
        most_count=service.borrow_count,
        replica_limit=service.most_count,
        priority=service.borrow_priority,
    )
    return Lending(borrower, tell)


def _hastened(
    demands: tuple[Demand, ...], service: Watched, watch: _Watch, expected: int
) -> tuple[Demand, ...]:
    """Return waiting work with what is wanted at once.

    Replicas for which GPUs at home are borrowed are left out: nothing is rented for them.
    """
    left = max(0, watch.ahead.count - expected)
    lent = expected
    why = f"service {service.name} breaks its promise: {watch.ahead.why}"
    found: list[Demand] = []
    for demand in demands:
        if not _is_replica(demand, service):
            found.append(demand)
            continue
        at_home = min(lent, demand.count)
        lent -= at_home
        if at_home == demand.count:
            continue
        demand = demand.model_copy(update={"count": demand.count - at_home})  # noqa: PLW2901
        if not left:
            found.append(demand)
            continue
        count = min(left, demand.count)
        left -= count
        watch.where = demand.selectors
        found.append(demand.model_copy(update={"count": count, "why_now": why}))
        if demand.count > count:
            found.append(demand.model_copy(update={"count": demand.count - count}))
    more = min(left, max(0, watch.extra - lent))
    if more:
        shape, where = dict(service.shape), watch.where
        found.append(Demand(shape=shape, count=more, selectors=where, why_now=why))
    return tuple(found)


def _is_replica(demand: Demand, service: Watched) -> bool:
    """Return whether a request that waits asks for what a replica of the service asks for."""
    same = asks_same(demand.shape, service.shape)
    return same and not demand.why_now and "cloud" in sites(demand.selectors)


def _view(service: Watched, watch: _Watch, lending: Lending | None) -> SloView:
    judgement, load = watch.judgement, watch.load
    return SloView(
        name=service.name,
        app=service.app,
        deployment=service.deployment,
        percentile=service.slo.percentile,
        target_ms=service.slo.target_ms,
        window_s=service.slo.window_s,
        state=judgement.state.value,
        since_at_s=watch.since_at_s,
        measured_ms=judgement.value_ms,
        rate_rps=judgement.rate_rps,
        why=". ".join(part for part in (judgement.why, watch.note) if part),
        running_count=load.running,
        wanted_count=load.target,
        ahead_count=watch.ahead.count,
        ahead_why=watch.ahead.why,
        loan_count=lending.count if lending else 0,
        loan_why=lending.why if lending else "",
    )
