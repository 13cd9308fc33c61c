"""Events about Ray's nodes: which joined, left or died, and which nobody rented."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hybrid.control.book import Book
from hybrid.control.observe import RayEye
from hybrid.core.models import Event, InstanceState, Node, NodeStatus

# Of one node's name, as far back as a first look reads.
_HISTORY = 50


@dataclass
class Joins:
    """Compares Ray's nodes with those of the tick before.

    Attributes:
        since_s: When each node that lives joined, by Ray's id.
        _seen: Status of each node at the last look; `None` before the first.
        _ending: Instances that were being ended at the last look.
    """

    book: Book
    since_s: Mapping[str, float] = field(default_factory=dict)
    _seen: Mapping[str, NodeStatus] | None = None
    _ending: frozenset[str] = frozenset()

    def note(self, ray: RayEye) -> None:
        """Write down what changed. Raises `LedgerError`; the same is told in the next tick."""
        if not ray.source.is_up:
            return
        nodes = ray.view.nodes
        if self._seen is None:
            # Another controller may have written them down: a new one does not repeat it.
            self.since_s = self._known(nodes)
            self._seen = dict.fromkeys(self.since_s, NodeStatus.RUNNING)
        found = [event for node in nodes for event in self._changes(node, self._seen)]
        self.book.record_all(found)
        joined = {str(e.facts["node_id"]): e.at_s for e in found if e.kind == "node_joined"}
        since_s = {**self.since_s, **joined}
        self._seen = {n.node_id: n.status for n in nodes}
        self.since_s = {n: at_s for n, at_s in since_s.items() if n in self._seen}
        ending = self.book.live(InstanceState.TERMINATING)
        self._ending = frozenset(i.instance_id for i in ending)

    def _known(self, nodes: Iterable[Node]) -> dict[str, float]:
        """Return when nodes joined, as history tells."""
        at_s: dict[str, float] = {}
        for node in nodes:
            for event in self.book.ledger.events(subject=_name(node), limit=_HISTORY):
                if event.kind == "node_joined" and event.facts.get("node_id") == node.node_id:
                    at_s[node.node_id] = event.at_s
        return at_s

    def _changes(self, node: Node, seen: Mapping[str, NodeStatus]) -> list[Event]:
        event, name = self.book.event, _name(node)
        before = seen.get(node.node_id)
        is_dead = node.status is NodeStatus.DEAD
        facts: dict[str, object] = {"node_id": node.node_id, "labels": dict(node.labels)}
        if is_dead and before not in (None, NodeStatus.DEAD):
            if self._was_told_to_leave(node):
                return [event("node_left", name, "its node left the cluster", **facts)]
            return [event("node_died", name, "its node died", **facts)]
        if before is not None or is_dead:
            return []
        found = [event("node_joined", name, "its node joined", **facts)]
        is_known = not node.instance_id or self.book.get(node.instance_id)
        is_named = node.instance_id or node.host or node.is_head
        if not is_known or (not is_named and node.labels.get("site") == "cloud"):
            found.append(event("unknown_node_seen", name, "no live intent belongs to it", **facts))
        return found

    def _was_told_to_leave(self, node: Node) -> bool:
        """Return whether we drained or ended it; a node that fails is told to end only then."""
        if not node.instance_id:
            return False
        if node.instance_id in self._ending:
            return True
        ledger = self.book.ledger
        row = self.book.get(node.instance_id) or ledger.instance(node.instance_id)
        return row is not None and row.drain_reason is not None


def _name(node: Node) -> str:
    """Return what people call it: its instance or host, or the start of Ray's id."""
    return node.instance_id or node.host or ("head" if node.is_head else node.node_id[:12])
