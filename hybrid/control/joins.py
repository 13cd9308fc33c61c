"""Events about Ray's nodes: which joined, which died, and which nobody rented."""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.control.book import Book
from hybrid.control.observe import RayEye
from hybrid.core.models import Event, Node, NodeStatus


@dataclass
class Joins:
    """Compares Ray's nodes with those of the tick before."""

    book: Book
    _seen: dict[str, NodeStatus] = field(default_factory=dict)

    def note(self, ray: RayEye) -> None:
        """Write down what changed. Raises `LedgerError`; the same is told in the next tick."""
        if not ray.source.is_up:
            return
        found: list[Event] = []
        for node in ray.view.nodes:
            found += self._changes(node)
        self.book.record_all(found)
        self._seen = {n.node_id: n.status for n in ray.view.nodes}

    def _changes(self, node: Node) -> list[Event]:
        event, labels = self.book.event, dict(node.labels)
        before = self._seen.get(node.node_id)
        is_dead = node.status is NodeStatus.DEAD
        name = node.instance_id or node.host or ("head" if node.is_head else "")
        if is_dead and before not in (None, NodeStatus.DEAD):
            return [event("node_died", node.node_id, name, labels=labels)]
        if before is not None or is_dead:
            return []
        found = [event("node_joined", node.node_id, name, labels=labels)]
        is_known = not node.instance_id or self.book.get(node.instance_id)
        if not is_known or (not name and labels.get("site") == "cloud"):
            words = "no live intent belongs to it"
            found.append(event("unknown_node_seen", node.node_id, words))
        return found
