"""Looking at Ray and at each instance, and applying what is seen to the book."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hybrid.control.book import Book
from hybrid.control.clouds import Clouds
from hybrid.control.params import ControlParams
from hybrid.control.reports import Reports
from hybrid.core.classify import Patience, Sight, classify, count_miss
from hybrid.core.errors import ClusterError
from hybrid.core.lifecycle import Fact
from hybrid.core.models import (
    CloudState,
    ClusterView,
    Instance,
    InstanceState,
    Node,
    NodeStatus,
    Reason,
)
from hybrid.core.policy.plan import Source
from hybrid.core.ports import Clock, Cluster
from hybrid.core.waiting import Backlog, look

_S = InstanceState

# An instance passes through at most a few states in one look; more is a bug in the table.
_MAX_FACTS = 4


@dataclass
class RayEye:
    """What Ray said last, and how long its waiting work has waited."""

    cluster: Cluster
    clock: Clock
    view: ClusterView = field(default_factory=ClusterView)
    source: Source = field(default_factory=lambda: Source(name="ray", is_up=False))
    _backlog: Backlog = field(default_factory=Backlog)

    def look(self) -> None:
        """Read Ray; when it does not answer, the view is empty and the source is down."""
        try:
            view = self.cluster.view()
        except ClusterError as error:
            # Ages are kept: work that waited before Ray went away still waits afterwards.
            self.view = ClusterView()
            self.source = Source(
                name="ray", is_up=False, problem=str(error), seen_at_s=self.source.seen_at_s
            )
            return
        # Ages are durations: by the clock that does not jump.
        self._backlog, self.view = look(self._backlog, view, now_s=self.clock.monotonic_s())
        self.source = Source(name="ray", is_up=True, seen_at_s=self.clock.now_s())

    def node_by_instance(self) -> Mapping[str, Node]:
        """Return the node of each instance; a living one wins over a dead one."""
        nodes: dict[str, Node] = {}
        for node in self.view.nodes:
            before = nodes.get(node.instance_id)
            if node.instance_id and (before is None or before.status is NodeStatus.DEAD):
                nodes[node.instance_id] = node
        return nodes


class Change(NamedTuple):
    """A fact that was applied to an instance."""

    before: Instance
    after: Instance
    fact: Fact


@dataclass
class Reconciler:
    """Brings the book in line with what is seen.

    Attributes:
        reports: What their nodes say; filled by another thread.
        _joining: Instances whose nodes used their join tokens; filled by another thread.
    """

    book: Book
    clouds: Clouds
    ray: RayEye
    clock: Clock
    params: ControlParams
    reports: Reports = field(default_factory=Reports)
    _absent_since_s: dict[str, float] = field(default_factory=dict)
    _joining: set[str] = field(default_factory=set)
    _is_mass_trouble: bool = False

    def note_join(self, instance_id: str) -> None:
        """Remember that a node proved itself: its machine exists, whatever the cloud says."""
        self._joining.add(instance_id)

    def reconcile(self, *, is_mass_trouble: bool = False) -> list[Change]:
        """Apply every fact about every live instance; return what was applied.

        Args:
            is_mass_trouble: See `classify.Sight`.
        """
        self._is_mass_trouble = is_mass_trouble
        nodes = self.ray.node_by_instance()
        applied: list[Change] = []
        for instance in self.book.all():
            sight = self._sight(instance, nodes.get(instance.instance_id))
            applied += self._settle(instance, sight)
        alive = {i.instance_id for i in self.book.all()}
        self._absent_since_s = {k: v for k, v in self._absent_since_s.items() if k in alive}
        self._joining.intersection_update(i.instance_id for i in self.book.live(_S.REQUESTED))
        self.reports.keep_only(alive)
        return applied

    def patience(self, instance: Instance) -> Patience:
        """Return how much evidence conclusions about an instance need."""
        provider = self.clouds.by_name.get(instance.offer.provider)
        return Patience(
            miss_count=self.params.miss_count,
            list_lag_s=provider.list_lag_s if provider else self.params.proof_s,
            proof_s=self.params.proof_s,
            node_absent_s=self.params.node_absent_s,
        )

    def _sight(self, instance: Instance, node: Node | None) -> Sight:
        name = instance.offer.provider
        return Sight(
            is_listed=self.clouds.is_listed(name),
            cloud=self.clouds.find(name, instance.instance_id, provider_id=instance.provider_id),
            is_ray_up=self.ray.source.is_up,
            node=node,
            node_absent_s=self._absent_s(instance, node),
            node_problem=self.reports.broken(instance.instance_id),
            is_mass_trouble=self._is_mass_trouble,
        )

    def _absent_s(self, instance: Instance, node: Node | None) -> float:
        if node is not None or not self.ray.source.is_up:
            self._absent_since_s.pop(instance.instance_id, None)
            return 0.0
        now_s = self.clock.monotonic_s()
        return now_s - self._absent_since_s.setdefault(instance.instance_id, now_s)

    def _settle(self, instance: Instance, sight: Sight) -> list[Change]:
        if instance.quarantine:
            return self._settle_quarantined(instance, sight)
        now_s = self.clock.now_s()
        counted = count_miss(instance, sight, now_s=now_s)
        current = self.book.note(instance, **_differences(instance, counted))
        applied = []
        if current.state is _S.REQUESTED and current.instance_id in self._joining:
            before, fact = current, Fact.LAUNCH_ACCEPTED
            current = self.book.apply(before, fact, problem="its node was heard of")
            applied.append(Change(before, current, fact))
        for _ in range(_MAX_FACTS):
            found = classify(current, sight, now_s=now_s, patience=self.patience(current))
            if found is None:
                break
            fact, problem = found
            changes: dict[str, object] = {}
            if fact is Fact.NODE_JOINED and sight.node is not None:
                changes["node_id"] = sight.node.node_id
            elif fact is Fact.DRAIN_STARTED:
                changes = _interrupted(now_s + self.params.policy.drain_s)
            before = current
            current = self.book.apply(before, fact, problem=problem, **changes)
            applied.append(Change(before, current, fact))
            if current.is_ended or current.quarantine:
                break
        return applied

    def _settle_quarantined(self, instance: Instance, sight: Sight) -> list[Change]:
        """Only the cloud's own word ends a quarantine; its lease sees to that word."""
        if sight.cloud is None or sight.cloud.state is not CloudState.GONE:
            return []
        gone = self.book.apply(instance, Fact.GONE, problem="the cloud says it is gone")
        return [Change(instance, gone, Fact.GONE)]


def _interrupted(deadline_at_s: float) -> dict[str, object]:
    """Return what is noted of a drain that came from the node itself, or from somebody's hand.

    When it is taken back is known to the node only. Ours is the usual deadline: sooner or later
    the machine ends by itself, and never do we end its work early.
    """
    words = "its cloud takes it back, or somebody drained it by hand"
    reason = Reason(code="interrupted", message=words)
    return {"drain_kind": "busy", "drain_reason": reason, "deadline_at_s": deadline_at_s}


def _differences(before: Instance, after: Instance) -> dict[str, object]:
    if before is after:
        return {}
    names = ("first_listed_at_s", "missing_count", "missing_since_s", "provider_id")
    return {n: getattr(after, n) for n in names if getattr(after, n) != getattr(before, n)}
