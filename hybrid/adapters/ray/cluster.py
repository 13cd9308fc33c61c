"""The Ray cluster as the controller sees it."""

from __future__ import annotations

from threading import Lock

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ray.gcs import Gcs
from hybrid.adapters.ray.idle import IdleMemory
from hybrid.adapters.ray.state import read_view
from hybrid.core.models import ClusterView, Node, NodeStatus
from hybrid.core.ports import Clock, DrainKind, DrainReply

_DEAD_NODES_SHOWN_S = 600.0


class RayCluster:
    """See `hybrid.core.ports.Cluster`. Thread-safe.

    The connection is opened by the first call, and opened again after any failure, so a head
    that was restarted on the same address is found by the next call.
    """

    def __init__(
        self,
        address: str,
        token: str,
        *,
        timeout_s: float = 5.0,
        dead_nodes_shown_s: float = _DEAD_NODES_SHOWN_S,
        clock: Clock | None = None,
    ) -> None:
        """Remember where the head is; does not connect.

        Args:
            address: `host:port` of Ray's GCS.
            token: Ray's auth token; `""` for a cluster without one.
            timeout_s: Longest wait for an answer.
            dead_nodes_shown_s: How long a dead node stays in the view. Ray lists up to a
                thousand of them for ever.
            clock: The system's clock unless given.
        """
        self._gcs = Gcs(address, token, timeout_s=timeout_s)
        self._dead_nodes_shown_s = dead_nodes_shown_s
        self._clock = clock or SystemClock()
        self._lock = Lock()
        self._dead_since_s: dict[str, float] = {}
        self._idle = IdleMemory()

    def view(self) -> ClusterView:
        """See `Cluster.view`."""
        with self._lock:
            view = read_view(self._gcs.state())
            now_s = self._clock.monotonic_s()
            nodes = self._idle.mend(view.nodes, now_s=now_s)
            return view.model_copy(update={"nodes": self._without_long_dead(nodes, now_s)})

    def drain(
        self, node_id: str, *, kind: DrainKind, deadline_at_s: float, message: str
    ) -> DrainReply:
        """See `Cluster.drain`. Ray also accepts for a node that is already dead."""
        return self._gcs.drain(node_id, kind=kind, deadline_at_s=deadline_at_s, message=message)

    def close(self) -> None:
        """Close the connection."""
        self._gcs.close()

    def _without_long_dead(self, nodes: tuple[Node, ...], now_s: float) -> tuple[Node, ...]:
        known = self._dead_since_s
        self._dead_since_s = {
            node.node_id: known.get(node.node_id, now_s)
            for node in nodes
            if node.status is NodeStatus.DEAD
        }
        forgotten = {
            node_id
            for node_id, since_s in self._dead_since_s.items()
            if now_s - since_s >= self._dead_nodes_shown_s
        }
        return tuple(node for node in nodes if node.node_id not in forgotten)
