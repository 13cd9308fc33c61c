"""Settings of behaviour: when to rent, when to return, and what must never be exceeded."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hybrid.core.models import Caps
from hybrid.settings.fields import (
    Amount,
    AutoPort,
    BindHost,
    Count,
    Duration,
    KeptFor,
    LedgerUrl,
    PositiveCount,
    PositiveDuration,
    Share,
)
from hybrid.settings.section import Section


class Queue(Section):
    """When the queue is too long."""

    max_wait_s: Duration = Field(300.0, description="Work that waits longer breaks the limit.")
    pending_gpus: Amount | None = Field(
        None, description="More GPUs than this waiting break it too."
    )


class Burst(Section):
    """When to rent, and how fast."""

    queue: Queue = Field(default_factory=Queue, description="When the queue is too long.")
    stabilisation_s: Duration = Field(
        30.0, description="A broken limit must stay broken this long before money is spent."
    )
    launches_per_tick: PositiveCount = Field(
        10, description="At most so many launches in one tick."
    )
    first_wave: PositiveCount = Field(
        10,
        description="Instances of one offer that come at the same time, at most, until the first "
        "node of it has joined: what an image that never joins can cost at a time.",
    )
    placement_grace_s: Duration = Field(
        60.0, description="Work that fits free capacity holds it for this long."
    )


class Drain(Section):
    """How a rented node is emptied before it is returned."""

    deadline_s: Duration = Field(1_800.0, description="Running work is ended after this long.")
    busy: Literal["keep", "come_home"] = Field(
        "keep",
        description="A rented node that still works when the queue is empty is kept until it is "
        "idle, or drained when home has room for its work.",
    )
    exit_margin_s: Duration = Field(
        120.0, description="Between the end of a drain and the end of the bill."
    )


class Idle(Section):
    """When a rented node is returned."""

    after_s: Duration = Field(
        600.0, description="Idle for this long; one that was rented for a job, a minute at most."
    )
    min_life_s: Duration = Field(900.0, description="But not younger than this.")
    boot_life_ratio: Amount = Field(3.0, description="Nor than so many of its boot times.")
    unhealthy_ratio: Share = Field(
        0.2, description="No node is returned while more than this share looks unhealthy."
    )
    unhealthy_hold_s: Duration = Field(
        1_800.0,
        description="And while it does, a rented node that looks dead to Ray is ended after so "
        "long only: a cut network looks the same. What the cloud or the node itself says holds "
        "at once.",
    )


class Budget(Section):
    """Hard caps on what is rented. An absent key is no cap of that kind."""

    nodes: Count | None = Field(None, description="Rented instances at a time.")
    gpus: Count | None = Field(None, description="Rented GPUs at a time.")
    usd_per_hour: Amount | None = Field(None, description="Sum of the prices at a time.")
    usd_per_day: Amount | None = Field(None, description="Per calendar day, UTC.")
    usd_per_month: Amount | None = Field(None, description="Per calendar month, UTC.")

    @property
    def caps(self) -> Caps:
        """The caps as the rest of the program knows them."""
        return Caps(
            node_count=self.nodes,
            gpu_count=self.gpus,
            usd_per_hour=self.usd_per_hour,
            usd_per_day=self.usd_per_day,
            usd_per_month=self.usd_per_month,
        )


class Lease(Section):
    """How long a rented node lives on when nothing renews it: the dead-man switch."""

    length_s: PositiveDuration = Field(1_800.0, description="It ends itself after this long.")
    renew_s: PositiveDuration = Field(300.0, description="Renewed this often.")


class Deadlines(Section):
    """How long a rented instance may stay in a passing state."""

    launch_s: PositiveDuration = Field(300.0, description="Until the cloud has answered.")
    join_s: PositiveDuration = Field(900.0, description="From launch to Ray node.")
    idle_drain_s: PositiveDuration = Field(60.0, description="For the drain of an idle node.")
    terminate_s: PositiveDuration = Field(300.0, description="Until an alarm is raised.")


class Reaper(Section):
    """How instances without a record, and records without an instance, are judged."""

    orphan_grace_s: Duration = Field(120.0, description="An orphan younger than this is left.")
    missing_after: PositiveCount = Field(
        3, description="Lists in a row that lack an instance before it counts as lost."
    )


class Backoff(Section):
    """How long an offer that failed is left alone; doubles with each failure."""

    first_s: PositiveDuration = Field(180.0, description="After the first failure.")
    longest_s: PositiveDuration = Field(1_800.0, description="At most.")


class Controller(Section):
    """The process that decides."""

    tick_s: PositiveDuration = Field(5.0, description="It looks and decides this often.")
    host: BindHost = Field("127.0.0.1", description="Address of its HTTP API.")
    port: AutoPort = Field("auto", description="Port of its HTTP API.")
    ledger: LedgerUrl | None = Field(
        None,
        description="Database URL; SQLite in the state folder if absent. A password goes "
        "into the variable HYBRID_LEDGER_URL.",
    )
    record: KeptFor = Field(
        7 * 86_400.0,
        description="How long decisions and what they saw are kept for `hybrid sim replay`, in the "
        "state folder, at most 256 MiB; or `off`.",
    )

    @property
    def ledger_url(self) -> str | None:
        """The ledger's URL with its password, or `None` for SQLite in the state folder."""
        return None if self.ledger is None else self.ledger.get_secret_value()
