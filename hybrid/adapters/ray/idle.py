"""Mends Ray's idle times.

When a node is drained, Ray 2.60 sets the idle time of every other node back to zero within
about a second (measured; a crash does not do it). Taken at its word, a fleet that shrinks one
node at a time would never have been idle for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hybrid.core.models import Node, NodeStatus

_SETTLE_S = 3.0  # how long after a node left the others may still be set back
_JITTER_S = 0.5  # of one and the same idle start, read at different times
_LEAVING = frozenset({NodeStatus.DRAINING, NodeStatus.DEAD})


class _Idle(NamedTuple):
    said_since_s: float  # by Ray
    since_s: float


class IdleMemory:
    """Remembers since when each node has been idle. Not thread-safe."""

    def __init__(self) -> None:
        self._idle_by_id: dict[str, _Idle] = {}
        self._gone: frozenset[str] = frozenset()
        self._seen_at_s: float | None = None
        self._window_s = (0.0, 0.0)

    def mend(self, nodes: Sequence[Node], *, now_s: float) -> tuple[Node, ...]:
        """Return the nodes with idle times that do not depend on other nodes' leaving.

        Work so short that it began and ended in the seconds in which some node left can go
        unnoticed; Ray still refuses to end a node that is busy.

        Args:
            nodes: All nodes of one view.
            now_s: When it was taken, on a monotonic clock.
        """
        gone = frozenset(node.node_id for node in nodes if node.status in _LEAVING)
        if self._seen_at_s is not None and gone - self._gone:
            self._window_s = (self._seen_at_s, now_s + _SETTLE_S)
        self._gone, self._seen_at_s = gone, now_s
        self._idle_by_id = {
            node.node_id: self._idle(node.node_id, now_s - node.idle_s)
            for node in nodes
            if node.idle_s is not None
        }
        return tuple(
            node
            if node.idle_s is None
            else node.model_copy(update={"idle_s": now_s - self._idle_by_id[node.node_id].since_s})
            for node in nodes
        )

    def _idle(self, node_id: str, said_since_s: float) -> _Idle:
        known = self._idle_by_id.get(node_id)
        if known is None:
            return _Idle(said_since_s, said_since_s)
        start_s, end_s = self._window_s
        is_same = abs(said_since_s - known.said_since_s) <= _JITTER_S
        if is_same or start_s - _JITTER_S <= said_since_s <= end_s:
            return _Idle(said_since_s, known.since_s)
        return _Idle(said_since_s, said_since_s)
