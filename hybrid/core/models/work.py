"""Jobs as the policy sees them: what they need, where they run, and how late they may be."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from pydantic import Field

from hybrid.core.models.base import Model
from hybrid.core.models.demand import Demand


class Checkpoint(Model):
    """What it costs a job to be stopped and to go on elsewhere.

    Attributes:
        save_s: From the request to a complete checkpoint; its GPUs are held so long.
        load_s: From its start elsewhere until it does useful work again.
        size_gb: What is shipped between sites, in GB (10^9 bytes).
    """

    save_s: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    load_s: float = Field(default=90.0, ge=0, allow_inf_nan=False)
    size_gb: float = Field(default=0.0, ge=0, allow_inf_nan=False)

    @property
    def trip_s(self) -> float:
        """What one interruption costs the job, seconds."""
        return self.save_s + self.load_s


class Slot(NamedTuple):
    """GPUs of one node that a job holds."""

    node_id: str
    gpus: float


class JobView(Model):
    """A job that waits or runs.

    Its allowance: it may end `max_wait_s` plus a share of its useful time later than if it had
    started at once and never been stopped. What is left of that is its slack.

    Attributes:
        units: What must fit on one node each, the largest first; all at once, or none.
        max_wait_s: Longest acceptable wait of its class.
        checkpoint: `None` for work that loses what it did when it is stopped: never moved.
        slots: Where it runs, a slot for each unit; empty while it waits.
        progress_s: Useful time before its present stretch.
        useful_from_s: When its present stretch begins or began to be useful, after saving and
            loading; `None` while it waits.
        is_started: It has run before.
        suspension_count: Times it was stopped and put back into the queue.
        interruption_count: Times it was stopped for any reason: suspended or moved.
        priority: Higher goes first, and may stop running work of a lower one that has
            checkpoints.
        is_filler: It only fills GPUs at home that nobody else wants: nothing is rented for it,
            and it leaves at once, with or without checkpoint.
        user: Whose it is, for fair shares.
        data_s: How long its data is shipped when it goes out, seconds; `None` when not known.
        data_usd: What that costs each time.
    """

    job_id: str
    units: tuple[Demand, ...] = Field(min_length=1)
    submitted_at_s: float
    max_wait_s: float = Field(ge=0)
    checkpoint: Checkpoint | None = None
    slots: tuple[Slot, ...] = ()
    progress_s: float = Field(default=0.0, ge=0)
    useful_from_s: float | None = None
    is_started: bool = False
    suspension_count: int = Field(default=0, ge=0)
    interruption_count: int = Field(default=0, ge=0)
    priority: int = 50
    is_filler: bool = False
    user: str = ""
    data_s: float | None = Field(default=0.0, ge=0, allow_inf_nan=False)
    data_usd: float = Field(default=0.0, ge=0, allow_inf_nan=False)

    @cached_property
    def pieces(self) -> tuple[Demand, ...]:
        """One entry for each node it needs, the largest first."""
        return tuple(unit for unit in self.units for _ in range(unit.count))

    @cached_property
    def sizes(self) -> tuple[float, ...]:
        """GPUs of each piece."""
        return tuple(piece.shape.get("GPU", 0.0) for piece in self.pieces)

    @cached_property
    def gpus(self) -> float:
        """GPUs of all of it."""
        return sum(self.sizes)

    @cached_property
    def is_single(self) -> bool:
        """Whether it runs on one node."""
        return len(self.pieces) == 1

    @cached_property
    def kind(self) -> tuple[object, ...]:
        """Equal for jobs that need the same."""
        return tuple(
            (tuple(sorted(unit.shape.items())), unit.count, unit.selectors) for unit in self.units
        )

    @property
    def trip_s(self) -> float:
        """What one interruption costs it, seconds; 0 for a job that is never stopped."""
        return self.checkpoint.trip_s if self.checkpoint else 0.0
