"""Every threshold of the policy, with its unit and default."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hybrid.core.models import Model
from hybrid.core.policy.jobs.params import JobParams


class PolicyParams(Model):
    """What an operator may tune. Defaults from reliability.md, to be re-measured.

    Attributes:
        max_wait_s: Work that waits longer breaks the queue limit.
        pending_gpus: More GPUs than this waiting break it too; `None` for no such limit.
        stabilisation_s: A broken limit must stay broken this long before money is spent.
        launches_per_tick: At most this many launches in one plan: a ramp, so that a wrong
            demand signal costs a few nodes before somebody can react.
        first_wave_count: Of an offer of which no node has joined yet, at most this many
            instances come at once: what an image that never joins can cost at a time.
        idle_after_s: A rented node idle for this long is asked to leave.
        min_life_s: A rented node is not asked to leave before this age.
        boot_life_ratio: Nor before this many times its learned boot time.
        drain_s: Deadline of a drain of a busy node.
        busy_drain: What to do with a rented node that still works when the queue is empty
            and home has room for its work: `keep` it until it is idle, or make it
            `come_home` by a drain with the deadline. `keep` loses no work.
        placement_grace_s: Waiting work that fits free capacity holds that capacity for this
            long; Ray places in milliseconds, so work that waits longer will not be placed.
        unhealthy_ratio: No scale-in while more than this share of our nodes looks unhealthy.
        jobs: Thresholds for work of our own queue, of which more is known.
        exit_margin_s: Time between the end of a drain and the end of the bill.
    """

    max_wait_s: float = Field(default=300.0, ge=0)
    pending_gpus: float | None = Field(default=None, ge=0)
    stabilisation_s: float = Field(default=30.0, ge=0)
    launches_per_tick: int = Field(default=10, ge=1)
    first_wave_count: int = Field(default=10, ge=1)
    idle_after_s: float = Field(default=600.0, ge=0)
    min_life_s: float = Field(default=900.0, ge=0)
    boot_life_ratio: float = Field(default=3.0, ge=0)
    drain_s: float = Field(default=1_800.0, ge=0)
    busy_drain: Literal["keep", "come_home"] = "keep"
    placement_grace_s: float = Field(default=60.0, ge=0)
    unhealthy_ratio: float = Field(default=0.2, ge=0, le=1)
    exit_margin_s: float = Field(default=120.0, ge=0)
    jobs: JobParams = Field(default_factory=JobParams)

    @property
    def exit_s(self) -> float:
        """Longest time a rented node may still cost money once it must leave, seconds."""
        return self.drain_s + self.exit_margin_s
