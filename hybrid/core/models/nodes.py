"""What Ray has."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from hybrid.core.models.base import Labels, Model, Shape
from hybrid.core.models.demand import Demand, Gang


class NodeStatus(StrEnum):
    """A Ray node's status, as the head sees it."""

    RUNNING = "running"
    IDLE = "idle"
    DRAINING = "draining"
    DEAD = "dead"


class Node(Model):
    """A member of the Ray cluster.

    Attributes:
        node_id: Ray's id, hex.
        instance_id: Our id of the rented instance it runs on; `""` for on-prem nodes.
        host: Name of the on-prem host; `""` for rented nodes.
        idle_s: How long Ray has seen it without work, objects or placement groups;
            `None` when busy or unknown.
        activity: Ray's own words on why it is not idle.
    """

    node_id: str
    instance_id: str = ""
    host: str = ""
    labels: Labels = Field(default_factory=dict)
    total: Shape
    available: Shape
    status: NodeStatus
    idle_s: float | None = None
    activity: tuple[str, ...] = ()
    is_head: bool = False


class ClusterView(Model):
    """What Ray says at one moment."""

    nodes: tuple[Node, ...] = ()
    demands: tuple[Demand, ...] = ()
    gangs: tuple[Gang, ...] = ()
