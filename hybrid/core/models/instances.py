"""The ledger's rows about rented machines and their money."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field

from hybrid.core.models.base import Model
from hybrid.core.models.offers import LaunchSpec, Offer


class InstanceState(StrEnum):
    """Where an instance is in its life; see `core.lifecycle` for the legal changes."""

    REQUESTED = "requested"
    BOOTING = "booting"
    RUNNING = "running"
    DRAINING = "draining"
    TERMINATING = "terminating"
    LOST = "lost"
    TERMINATED = "terminated"
    FAILED = "failed"


class Reason(Model):
    """Why something was decided, for people and for machines.

    Attributes:
        code: A stable word, such as `queue_wait`.
        message: One sentence.
        facts: The numbers that decided it; each key carries its unit.
    """

    code: str
    message: str
    facts: Mapping[str, float | int | str] = Field(default_factory=dict)


class Instance(Model):
    """A rented machine, from intent to proof of its end. One row of the ledger.

    Attributes:
        token: Idempotency token of the create call.
        state_at_s: When it entered `state`.
        deadline_at_s: When the current state is overdue; `None` for states without one.
        drain_kind: `idle` or `busy` while draining.
        first_listed_at_s: When the cloud's list first had it. Only then is "not found" a proof.
        missing_count: Cloud lists in a row that lacked it.
        missing_since_s: When the first of those lists was read.
        lease_until_s: The expiry last confirmed by the provider.
        quarantine: Why nothing may touch it any more; `""` when it is healthy. Its lease is
            not renewed, so it ends itself.
        joined_at_s: When its node was first seen in Ray.
        ended_at_s: When the cloud's own word proved it gone.
        problem: The last thing that went wrong.
    """

    instance_id: str
    offer: Offer
    spec: LaunchSpec
    token: str
    state: InstanceState
    state_at_s: float
    created_at_s: float
    reason: Reason
    provider_id: str = ""
    node_id: str = ""
    deadline_at_s: float | None = None
    drain_kind: Literal["", "idle", "busy"] = ""
    drain_reason: Reason | None = None
    first_listed_at_s: float | None = None
    missing_count: int = 0
    missing_since_s: float | None = None
    lease_until_s: float | None = None
    quarantine: str = ""
    joined_at_s: float | None = None
    ended_at_s: float | None = None
    problem: str = ""

    @property
    def is_ended(self) -> bool:
        """Whether nothing of it is left to do or to pay."""
        return self.state in (InstanceState.TERMINATED, InstanceState.FAILED)


class Caps(Model):
    """Hard limits. `None` means no limit of that kind was set.

    Attributes:
        node_count: Rented instances at a time.
        gpu_count: Rented GPUs at a time.
        usd_per_hour: Sum of the prices of what is rented at a time.
        usd_per_day: Money per calendar day, UTC.
        usd_per_month: Money per calendar month, UTC.
    """

    node_count: int | None = Field(default=None, ge=0)
    gpu_count: int | None = Field(default=None, ge=0)
    usd_per_hour: float | None = Field(default=None, ge=0)
    usd_per_day: float | None = Field(default=None, ge=0)
    usd_per_month: float | None = Field(default=None, ge=0)


class Commitment(Model):
    """What is promised and spent so far; what the caps are held against.

    Attributes:
        node_count, gpu_count, usd_per_hour: Sums over all instances not proved gone.
        day_usd, month_usd: Estimated spend since the start of the UTC day and month,
            running instances included up to now.
        day_exit_usd: What it would still cost to bring every live instance home by its
            drain deadline: kept in reserve inside the day and month caps.
    """

    node_count: int = 0
    gpu_count: int = 0
    usd_per_hour: float = 0.0
    day_usd: float = 0.0
    month_usd: float = 0.0
    day_exit_usd: float = 0.0


class Event(Model):
    """One line of history. `seq` is given by the ledger.

    Attributes:
        kind: snake_case, past tense, such as `instance_requested`.
        subject: The id it is about: instance, node, job, offer, or `""`.
        facts: JSON values; never a secret.
    """

    seq: int = 0
    at_s: float
    epoch: int
    kind: str
    subject: str = ""
    message: str = ""
    facts: Mapping[str, object] = Field(default_factory=dict)


class Spend(Model):
    """Estimated cost of one instance over its whole life, written when it ended."""

    instance_id: str
    provider: str
    offer_id: str
    reason_code: str
    from_s: float
    to_s: float
    gpu_count: int
    usd: float


class OfferFailure(Model):
    """Why and until when an offer, or all offers of a place or an account, are not tried again.

    Attributes:
        key: An offer id, or the key of a larger scope; see `core.scopes`.
    """

    key: str
    failure_count: int = Field(ge=1)
    until_s: float
    error: str
    message: str
