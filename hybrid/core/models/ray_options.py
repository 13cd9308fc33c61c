"""How Ray runs on a node, as far as the configuration decides it for the whole cluster."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from hybrid.core.models.base import Model

MIN_OBJECT_STORE_BYTES = 78_643_200
"""Ray refuses less ("minimum allowed is 78643200 bytes")."""

FixedPort: TypeAlias = Annotated[int, Field(ge=1024, le=65_535)]


class RayHealth(Model):
    """How fast Ray notices a dead node.

    With these defaults a node that was cut off was dead to Ray after 10.6 s and its task ran
    again after 26 s; with Ray's own after 64 s, and the task not within minutes (measured).

    Attributes:
        initial_delay_s: First health check after a node joined.
        period_s: Between checks.
        timeout_s: Of one check.
        failure_threshold: Failed checks in a row that mean death.
        keepalive_time_s: Silence after which a connection is probed.
        keepalive_timeout_s: How long the probe may take.
    """

    initial_delay_s: float = Field(default=2.0, ge=0)
    period_s: float = Field(default=2.0, gt=0)
    timeout_s: float = Field(default=3.0, gt=0)
    failure_threshold: int = Field(default=3, ge=1)
    keepalive_time_s: float = Field(default=10.0, gt=0)
    keepalive_timeout_s: float = Field(default=5.0, gt=0)


class RayOptions(Model):
    """What every node of a cluster is told alike, own or rented.

    Attributes:
        object_store_bytes: `None` leaves it to Ray, which takes 30 % of the memory.
        health: How fast a dead node is noticed.
        worker_ports: First and last port of workers; `None` lets each take any free port,
            which nodes that share a machine need.
        max_shapes: Shapes of waiting work that are reported to the head; Ray's own limit is
            100, and what is beyond it is not seen.
    """

    object_store_bytes: int | None = Field(default=None, ge=MIN_OBJECT_STORE_BYTES)
    health: RayHealth = Field(default_factory=RayHealth)
    worker_ports: tuple[FixedPort, FixedPort] | None = None
    max_shapes: int = Field(default=1000, ge=1)
