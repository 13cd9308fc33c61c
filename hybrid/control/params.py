"""How the loop behaves: times and limits that are not the policy's."""

from __future__ import annotations

from pydantic import Field

from hybrid.core.lifecycle import Deadlines
from hybrid.core.models import Caps, Model, RayOptions
from hybrid.core.policy.params import PolicyParams
from hybrid.jobs.params import QueueParams


class ControlParams(Model):
    """Settings of the loop; see reliability.md for where the numbers come from.

    Attributes:
        tick_s: Time between ticks.
        lease_s: How long an instance lives without a sign from the controller.
        renew_s: How often leases are renewed.
        orphan_grace_s: An unknown instance younger than this is left alone: its row may be
            on its way.
        miss_count: Cloud lists in a row without an instance before it may be missing.
        proof_s: See `classify.Patience`.
        node_absent_s: See `classify.Patience`.
        mass_hold_s: While much looks dead at once, what looks dead is ended after so long only.
        backoff_base_s, backoff_cap_s: How long a failed offer rests.
        retry_s: Pause between two tries of one launch or termination.
        failover_rounds: Plans made in one tick at most, each after a cloud refused a launch.
        stall_s: A tick that lasts longer makes the controller unhealthy; no launches then.
    """

    tick_s: float = Field(default=5.0, gt=0)
    lease_s: float = Field(default=1_800.0, gt=0)
    renew_s: float = Field(default=300.0, gt=0)
    orphan_grace_s: float = Field(default=120.0, ge=0)
    miss_count: int = Field(default=3, ge=1)
    proof_s: float = Field(default=600.0, ge=0)
    node_absent_s: float = Field(default=60.0, ge=0)
    mass_hold_s: float = Field(default=1_800.0, ge=0)
    backoff_base_s: float = Field(default=180.0, gt=0)
    backoff_cap_s: float = Field(default=1_800.0, gt=0)
    retry_s: float = Field(default=5.0, ge=0)
    failover_rounds: int = Field(default=8, ge=1)
    stall_s: float = Field(default=120.0, gt=0)
    deadlines: Deadlines = Field(default_factory=Deadlines)
    caps: Caps = Field(default_factory=Caps)
    policy: PolicyParams = Field(default_factory=PolicyParams)
    queue: QueueParams = Field(default_factory=QueueParams)


class ClusterFacts(Model):
    """What every launch must know about the cluster.

    Attributes:
        head_address: `host:port` of Ray's GCS, as nodes reach it.
        controller_url: As nodes reach it.
        ray: How Ray runs on a machine that is rented.
    """

    name: str
    cluster_id: str
    head_address: str
    controller_url: str
    ray_version: str
    python_version: str
    ray: RayOptions = Field(default_factory=RayOptions)
