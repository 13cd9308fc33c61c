"""Whether the place that is kept for a job is there, and free, by Ray's own word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hybrid.core.models import Job, Node, NodeStatus
from hybrid.core.policy.room import fits
from hybrid.jobs.views import shape_of


class Problem(NamedTuple):
    """Why a job cannot start at its place now.

    Attributes:
        is_final: It never can: the place is to be given back.
    """

    message: str
    is_final: bool


@dataclass
class Rooms:
    """What Ray said of the nodes in this tick."""

    _nodes: dict[str, Node] = field(default_factory=dict)
    _free: dict[str, dict[str, float]] = field(default_factory=dict)
    _leaving: Mapping[str, float] = field(default_factory=dict)

    def look(self, nodes: tuple[Node, ...], leaving: Mapping[str, float]) -> None:
        """Take what was seen: the nodes, and when those will end that have to."""
        self._nodes = {node.node_id: node for node in nodes}
        self._free = {}
        self._leaving = leaving

    def problem(self, job: Job) -> Problem | None:
        """Return why a job cannot start at its place, or `None` if it can."""
        shape = shape_of(job)
        for slot in job.slots:
            node = self._nodes.get(slot.node_id)
            if node is None or node.status not in (NodeStatus.RUNNING, NodeStatus.IDLE):
                return Problem("the node that was kept for it is gone", is_final=True)
            if not fits(shape, self._free_on(node)):
                return Problem("its place is not free yet", is_final=False)
        return None

    def take(self, job: Job) -> None:
        """Count a job's place as taken; Ray will say so in a moment."""
        shape = shape_of(job)
        for slot in job.slots:
            node = self._nodes.get(slot.node_id)
            if node is not None:
                free = self._free_on(node)
                for name, amount in shape.items():
                    free[name] = free.get(name, 0.0) - amount

    def is_lost(self, job: Job) -> bool:
        """Return whether a node that a job ran on is dead or gone."""
        nodes = [self._nodes.get(slot.node_id) for slot in job.slots]
        return any(node is None or node.status is NodeStatus.DEAD for node in nodes)

    def is_home(self, job: Job) -> bool:
        """Return whether a job's place is on-prem."""
        node = self._nodes.get(job.slots[0].node_id) if job.slots else None
        return node is not None and not node.instance_id

    def leaves_at_s(self, job: Job) -> float | None:
        """Return when a job's place will end, if it has to."""
        found = [self._leaving[s.node_id] for s in job.slots if s.node_id in self._leaving]
        return min(found, default=None)

    def _free_on(self, node: Node) -> dict[str, float]:
        return self._free.setdefault(node.node_id, dict(node.available))
