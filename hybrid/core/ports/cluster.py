"""The Ray cluster: what it has, what it cannot place, and the drain."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from hybrid.core.models import ClusterView, Model


class DrainKind(StrEnum):
    """How hard a drain is."""

    IDLE = "idle"
    """Ray checks and ends the node in one step, or refuses because work arrived."""
    BUSY = "busy"
    """No new work; running work goes on. Cannot be refused, has a deadline that we enforce."""


class DrainReply(Model):
    """Ray's answer to a drain."""

    is_accepted: bool
    message: str = ""


class Cluster(Protocol):
    """The Ray cluster: what it has, what it cannot place, and the drain."""

    def view(self) -> ClusterView:
        """Return nodes and waiting work as of now. `Demand.waiting_s` is not filled.

        Raises:
            ClusterError: Ray is unreachable.
        """
        ...

    def drain(
        self, node_id: str, *, kind: DrainKind, deadline_at_s: float, message: str
    ) -> DrainReply:
        """Ask Ray to empty a node. `deadline_at_s` matters for `BUSY` only.

        Raises:
            ClusterError: Ray is unreachable; the drain may have been accepted.
        """
        ...
