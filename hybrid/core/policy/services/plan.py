"""What the policy answers about one service, and what it wants to be told again."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from hybrid.core.models import Model, Reason

Held: TypeAlias = tuple[tuple[float, int], ...]
"""Instants and counts: those of a span of time that can still be its highest or lowest."""


class ServiceMemory(Model):
    """What one decision leaves for the next. Empty after a restart, which only makes it patient.

    Attributes:
        known_since_s: Since when rate and backlog were known without a gap.
        slow_at_s: When renting was last thought about.
        borrow_peaks: Highest need of replicas, over the hold of loans.
        rent_peaks: Highest need beyond home, over the hold of rented replicas.
        wanted_peaks: Most replicas that the slow loop wanted rented, over the same hold.
        lows: Lowest need beyond home, over the time that makes it last; counts are negative.
    """

    known_since_s: float | None = None
    slow_at_s: float | None = None
    borrow_peaks: Held = ()
    rent_peaks: Held = ()
    wanted_peaks: Held = ()
    lows: Held = ()


class Borrow(Model):
    """Free so many more local GPUs of batch work for the service."""

    kind: Literal["borrow"] = "borrow"
    count: int = Field(gt=0)
    reason: Reason


class GiveBack(Model):
    """Give so many borrowed GPUs back to batch work."""

    kind: Literal["give_back"] = "give_back"
    count: int = Field(gt=0)
    reason: Reason


class Rent(Model):
    """Rent so many more replicas."""

    kind: Literal["rent"] = "rent"
    count: int = Field(gt=0)
    reason: Reason


class Release(Model):
    """Return so many rented replicas; those that still boot first."""

    kind: Literal["release"] = "release"
    count: int = Field(gt=0)
    reason: Reason


ServiceAction: TypeAlias = Annotated[
    Borrow | GiveBack | Rent | Release, Field(discriminator="kind")
]


class ServicePlan(Model):
    """What to do about one service now, and why not more.

    Attributes:
        findings: What stands in the way of growing or shrinking.
        rate_rps: The rate that was decided on; `None` when not known.
        need_count: Replicas of all kinds that it takes; `None` when not known.
        memory: To be handed back in the next view.
    """

    actions: tuple[ServiceAction, ...] = ()
    findings: tuple[Reason, ...] = ()
    rate_rps: float | None = None
    need_count: int | None = None
    memory: ServiceMemory = Field(default_factory=ServiceMemory)
