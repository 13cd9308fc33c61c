"""What the simulator takes for given: prices, boots, failures, checkpoints, promises."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from hybrid.core.models import Model
from hybrid.core.models.work import Checkpoint

A100_USD_PER_HOUR = 3.673385
"""On-demand price of one A100-40GB GPU, Google Cloud us-central1, read on 2026-08-03."""


class Boot(Model):
    """How long rented machines take to become nodes.

    Attributes:
        alloc_s: From the request until the bill begins.
        median_s, sigma: Log-normal time from then to the node; sigma 0 makes it exact. An
            assumption, not measured on GPU machines.
        least_s: Never quicker than this.
        fail_share: This share of requests finds no capacity.
        fail_s: How long it takes to find that out, after `alloc_s`.
        expected_s: What the policy is told: the 95th percentile of request to node.
    """

    alloc_s: float = Field(default=30.0, ge=0)
    median_s: float = Field(default=240.0, ge=0)
    sigma: float = Field(default=0.35, ge=0)
    least_s: float = Field(default=60.0, ge=0)
    fail_share: float = Field(default=0.03, ge=0, le=1)
    fail_s: float = Field(default=60.0, ge=0)
    expected_s: float = Field(default=510.0, ge=0)


class SimParams(Model):
    """One simulated site with one cloud account.

    Attributes:
        gpus: GPUs at home, in nodes of `node_gpus`.
        usd_per_gpu_hour: On-demand price of one GPU.
        node_sizes: GPUs of the instance types that can be rented.
        max_rented_gpus: The account's quota.
        tick_s: How often the policy is asked.
        max_wait_s: Longest acceptable wait, for classes not in `max_wait_by_class_s`.
        late_share: A job may be late by its longest wait plus this share of its run time.
        checkpoint: What an interruption costs a job that can be stopped.
        bill_least_s: A node is billed for at least so long.
        bill_tail_s: And for so long after it was returned.
        flap_s: A launch within this time after a return counts as a flap.
        sample_s: The course of the run is noted once in this time.
        seed: Of every random draw.
    """

    gpus: int = Field(ge=0)
    node_gpus: int = Field(default=8, ge=1)
    usd_per_gpu_hour: float = Field(default=A100_USD_PER_HOUR, gt=0, allow_inf_nan=False)
    node_sizes: tuple[int, ...] = (1, 2, 4, 8)
    max_rented_gpus: int = Field(default=2_000, ge=0)
    tick_s: float = Field(default=30.0, gt=0)
    max_wait_s: float = Field(default=1_800.0, ge=0)
    max_wait_by_class_s: Mapping[str, float] = Field(default_factory=dict)
    late_share: float = Field(default=0.02, ge=0)
    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    boot: Boot = Field(default_factory=Boot)
    bill_least_s: float = Field(default=60.0, ge=0)
    bill_tail_s: float = Field(default=30.0, ge=0)
    flap_s: float = Field(default=900.0, ge=0)
    sample_s: float = Field(default=3_600.0, gt=0)
    seed: int = 0
