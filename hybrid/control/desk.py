"""The controller as the API sees it: reads the last view, and asks the loop for the rest."""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.control.alarms import alarms
from hybrid.control.audit import audit
from hybrid.control.commands import Commands
from hybrid.control.present import cost_view, instance_view, with_reasons
from hybrid.control.published import Published
from hybrid.core.cost import month_start_s
from hybrid.core.rests import rest_views
from hybrid.core.views import (
    Alarm,
    AuditView,
    BudgetView,
    ClusterInfo,
    ControllerInfo,
    CostView,
    EventsView,
    InstancesView,
    JobCounts,
    JobsView,
    NodesView,
    PlanView,
    StatusView,
)
from hybrid.jobs.why import Seen

_AUDITED_EVENTS = 10_000


@dataclass
class Desk(Commands):
    """See `hybrid.control.service.Service`.

    Attributes:
        info: The cluster, for `status`.
        settings: The configuration in force, without secrets.
        fault: Why the last tick failed, or `""`.
    """

    info: ClusterInfo
    settings: dict[str, object]
    pid: int
    fault: str = ""
    _published: Published | None = None
    _tick_s: float | None = None
    _tick_at_s: float | None = None
    _tick_started_s: float | None = None
    _alarm_since_s: dict[tuple[str, str], float] = field(default_factory=dict)
    _fault_since_s: float | None = None

    # --- the loop's side ------------------------------------------------------------------

    def tick_started(self) -> None:
        """Note the start of a tick, for the stall watch."""
        self._tick_started_s = self.clock.monotonic_s()

    def tick_failed(self, reason: str) -> None:
        """Note that a tick could not be finished, until one can."""
        self._fault_since_s = self._fault_since_s or self.clock.now_s()
        self.fault = reason

    def publish(self) -> None:
        """Hand over what is true after a tick; called by the loop's thread only."""
        if self._tick_started_s is not None:
            self._tick_s = self.clock.monotonic_s() - self._tick_started_s
        self._tick_started_s = None
        self._tick_at_s = self.clock.now_s()
        self._published = self._take()
        self.fault, self._fault_since_s = "", None

    def _take(self) -> Published:
        loop, now_s = self.loop, self.clock.now_s()
        hosts = loop.base.hosts(loop.ray.view.nodes)
        rented, sources = loop.reconciler.reports.told(loop.book.all()), loop.sources()
        found = alarms(
            rented,
            sources if loop.is_ready else (),
            loop.base.statuses,
            loop.book.failures(),
            loop.plan.findings if loop.is_ready else (),
            head_problem=loop.base.problem if loop.is_ready else "",
            mass_trouble=loop.mass_trouble.alarm() if loop.is_ready else None,
            now_s=now_s,
        )
        return Published(
            at_s=now_s,
            summary=self._summary(),
            cluster=self.info,
            controller=self._controller(),
            mode=loop.mode,
            ray=loop.ray.view,
            hosts=hosts,
            statuses=dict(loop.base.statuses),
            rented=rented,
            plan=self._plan(),
            budget=BudgetView(caps=loop.params.caps, now=loop.commitment),
            jobs=JobCounts(**{s.value: n for s, n in self.ledger.job_counts().items()}),
            sources=sources,
            alarms=self._dated(found),
            joined_at_s=loop.joins.since_s,
            progress=loop.reconciler.reports.progress(),
            services=loop.slo.views(),
            queue=Seen(
                jobs=tuple(loop.jobs.book.live()) if loop.is_ready else (),
                nodes=loop.ray.view.nodes,
                hosts=hosts,
                offers=loop.clouds.offers(),
                actions=loop.plan.actions,
            ),
        )

    def _summary(self) -> str:
        loop = self.loop
        if loop.is_ready or loop.mode.is_closing:
            return loop.plan.summary or loop.phase
        # The first plans see a cluster that is not all there yet: they say nothing of it.
        return f"Starting: {loop.phase}." if loop.phase else "Starting."

    def _dated(self, found: tuple[Alarm, ...]) -> tuple[Alarm, ...]:
        """Return alarms with the instant each was first raised, not last."""
        since = {
            (a.code, a.subject): self._alarm_since_s.get((a.code, a.subject), a.since_at_s)
            for a in found
        }
        self._alarm_since_s = since
        return tuple(a.model_copy(update={"since_at_s": since[a.code, a.subject]}) for a in found)

    # --- reading --------------------------------------------------------------------------

    def status(self) -> StatusView:
        """See `Service.status`."""
        published = self._published
        if published is None:
            return StatusView(
                at_s=self.clock.now_s(),
                summary="Starting.",
                is_bursting=False,
                cluster=self.info,
                controller=self._controller(),
                mode=self.loop.mode,
                budget=BudgetView(caps=self.loop.params.caps, now=self.loop.commitment),
                alarms=self._fault_alarms(),
            )
        view = published.view
        # Ages are told as of this answer: after a tick that hangs they must go on growing.
        news = {
            "at_s": self.clock.now_s(),
            "controller": self._controller(),
            "alarms": (*self._fault_alarms(), *view.alarms),
        }
        return view.model_copy(update=news)

    def nodes(self) -> NodesView:
        """See `Service.nodes`."""
        view = self.status()
        return NodesView(at_s=view.at_s, nodes=view.nodes)

    def plan(self) -> PlanView:
        """See `Service.plan`."""
        return self._plan() if self._published is None else self._published.plan

    def instances(self, *, limit: int = 1000) -> InstancesView:
        """See `Service.instances`."""
        now_s = self.clock.now_s()
        rows = self.loop.reconciler.reports.told(self.ledger.instances(limit=limit))
        views = tuple(instance_view(i, now_s=now_s) for i in rows)
        return InstancesView(at_s=now_s, instances=views)

    def events(self, *, after_seq: int = 0, limit: int = 200, subject: str = "") -> EventsView:
        """See `Service.events`."""
        events = tuple(self.ledger.events(after_seq=after_seq, limit=limit, subject=subject))
        return EventsView(events=events, next_seq=events[-1].seq if events else after_seq)

    def cost(self, *, since_s: float = 0.0) -> CostView:
        """See `Service.cost`."""
        # The live ones first: one that ends in between is in both answers, never in neither.
        live = self.ledger.live_instances()
        now_s, params = self.clock.now_s(), self.loop.params
        return cost_view(
            live=live,
            instances=self.ledger.instances(),
            spends=self.ledger.spends(since_s=min(since_s, month_start_s(now_s))),
            caps=params.caps,
            exit_s=params.policy.exit_s,
            since_s=since_s,
            now_s=now_s,
        )

    def config(self) -> dict[str, object]:
        """See `Service.config`."""
        return self.settings

    def jobs(self, *, limit: int = 200, is_live_only: bool = False) -> JobsView:
        """See `Service.jobs`."""
        found = self.ledger.jobs(is_live_only=is_live_only, limit=limit)
        published = self._published
        findings = published.plan.findings if published else ()
        why = published.why_waiting if published else {}
        return JobsView(at_s=self.clock.now_s(), jobs=with_reasons(found, findings, why))

    def audit(self, job_id: str) -> AuditView:
        """See `Service.audit`."""
        return audit(
            self.job(job_id),
            self.ledger.events(subject=job_id, limit=_AUDITED_EVENTS),
            self.runner,
            self._places(),
            now_s=self.clock.now_s(),
        )

    def _places(self) -> dict[str, tuple[str, str]]:
        """Return the name and the site of every node that is or was, by Ray's id."""
        known = {i.node_id: (i.instance_id, "cloud") for i in self.ledger.instances() if i.node_id}
        view = self._published.ray if self._published else None
        for node in view.nodes if view else ():
            if not node.instance_id:
                known[node.node_id] = (node.host or ("head" if node.is_head else ""), "onprem")
        return known

    def _fault_alarms(self) -> tuple[Alarm, ...]:
        fault, since_s = self.fault, self._fault_since_s
        if not fault or since_s is None:
            return ()
        what = (
            f"the controller cannot finish a tick, so this may be old; it goes on trying: {fault}"
        )
        return (Alarm(code="tick_failed", what=what, since_at_s=since_s),)

    # --- parts ----------------------------------------------------------------------------

    def _controller(self) -> ControllerInfo:
        loop = self.loop
        state = "ready" if loop.is_ready else "starting"
        started_s = self._tick_started_s
        is_stalled = (
            started_s is not None and self.clock.monotonic_s() - started_s > loop.params.stall_s
        )
        if loop.mode.is_closing:
            state = "closing"
        elif is_stalled:
            state = "stalled"
        elif self.fault:
            state = "degraded"
        return ControllerInfo(
            pid=self.pid,
            epoch=self.ledger.epoch,
            state=state,
            phase=self.fault or loop.phase,
            tick_count=loop.tick_count,
            last_tick_at_s=self._tick_at_s,
            tick_s=self._tick_s,
        )

    def _plan(self) -> PlanView:
        loop, plan = self.loop, self.loop.plan
        offers, now_s = loop.clouds.offers(), self.clock.now_s()
        return PlanView(
            at_s=loop.plan_at_s,
            summary=plan.summary,
            actions=plan.actions,
            findings=plan.findings,
            resting=rest_views(loop.book.failures(), offers, now_s=now_s),
            withheld=loop.clouds.withheld(),
        )
