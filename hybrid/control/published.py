"""What the loop leaves for its readers after a tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hybrid.control.present import demand_views, instance_view, node_views
from hybrid.core.models import ClusterView, Instance, InstanceState
from hybrid.core.policy.plan import Host, Source
from hybrid.core.ports import HostStatus, Mode
from hybrid.core.views import (
    Alarm,
    BudgetView,
    ClusterInfo,
    ControllerInfo,
    JobCounts,
    PlanView,
    SloView,
    StatusView,
)
from hybrid.jobs.why import Seen, why_waiting


@dataclass(frozen=True)
class Published:
    """The parts of a status, taken at one moment and never changed.

    The view of a thousand nodes costs tens of milliseconds, so it is made when somebody asks,
    in the asker's thread, and once; the loop pays for handing over the parts only.
    """

    at_s: float
    summary: str
    cluster: ClusterInfo
    controller: ControllerInfo
    mode: Mode
    ray: ClusterView
    hosts: tuple[Host, ...]
    statuses: Mapping[str, HostStatus]
    rented: tuple[Instance, ...]
    plan: PlanView
    budget: BudgetView
    jobs: JobCounts
    sources: tuple[Source, ...]
    alarms: tuple[Alarm, ...]
    joined_at_s: Mapping[str, float]
    progress: Mapping[str, str]
    services: tuple[SloView, ...]
    queue: Seen

    @cached_property
    def why_waiting(self) -> Mapping[str, str]:
        """Why each job of our queue waits, by its id."""
        return why_waiting(self.queue)

    @cached_property
    def view(self) -> StatusView:
        """The whole cluster on one page."""
        return StatusView(
            at_s=self.at_s,
            summary=self.summary,
            is_bursting=any(i.state is not InstanceState.LOST for i in self.rented),
            cluster=self.cluster,
            controller=self.controller,
            mode=self.mode,
            nodes=node_views(
                self.ray,
                self.hosts,
                self.statuses,
                self.rented,
                self.joined_at_s,
                progress=self.progress,
            ),
            instances=tuple(instance_view(i, now_s=self.at_s) for i in self.rented),
            demand=demand_views(self.ray),
            plan=self.plan,
            budget=self.budget,
            jobs=self.jobs,
            services=self.services,
            sources=self.sources,
            alarms=self.alarms,
        )
