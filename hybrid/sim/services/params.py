"""What the simulator of services takes for given."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hybrid.core.models import Model
from hybrid.sim.params import A100_USD_PER_HOUR, Boot


class ServiceSimParams(Model):
    """One simulated service, its own replicas, and what it may borrow and rent.

    Attributes:
        home: Replicas of its own at home, one GPU each. They cost nothing here.
        borrowable: GPUs of local batch work that may be on loan at a time.
        rentable: Rented replicas that may exist at a time.
        replica_rps: What one replica serves, requests per second. No batching effects.
        wait_slo_s: A request that waits longer for its start breaks the promise.
        tick_s: Length of a window of arrivals, and how often the policy is asked.
        scale: Times the rates of the trace.
        shape: Between the middles of the trace's windows the rate goes in a line, or it stays
            and jumps at their edges.
        most_dispersion: Variance of arrivals in a tick over their mean is the square of the
            trace's variation, but not more than this.
        usd_per_gpu_hour: Price of a rented replica, and of a borrowed GPU: the batch work that
            it displaces has to be rented for.
        loan_s: From asking for a loan until it serves; it costs from the start.
        loan_overhead_s: GPU time that each loan costs on top: saving, loading, lost work.
        boot: How long rented replicas take to serve, with the pull of the model.
        bill_least_s, bill_tail_s: As in the simulator of jobs.
        flap_s: A launch within this time after a return counts as a flap.
        slot_s: Length of the slots in which the history of days is kept.
        seed: Of every random draw.
    """

    home: int = Field(default=48, ge=0)
    borrowable: int = Field(default=64, ge=0)
    rentable: int = Field(default=1_000, ge=0)
    replica_rps: float = Field(default=4.0, gt=0, allow_inf_nan=False)
    wait_slo_s: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    tick_s: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    shape: Literal["line", "steps"] = "line"
    most_dispersion: float = Field(default=12.0, ge=1)
    usd_per_gpu_hour: float = Field(default=A100_USD_PER_HOUR, gt=0, allow_inf_nan=False)
    loan_s: float = Field(default=40.0, ge=0)
    loan_overhead_s: float = Field(default=150.0, ge=0)
    boot: Boot = Field(
        default_factory=lambda: Boot(median_s=420.0, least_s=120.0, expected_s=780.0)
    )
    bill_least_s: float = Field(default=60.0, ge=0)
    bill_tail_s: float = Field(default=30.0, ge=0)
    flap_s: float = Field(default=900.0, ge=0)
    slot_s: float = Field(default=600.0, gt=0)
    seed: int = 0
