"""What clouds offer, what is asked of them, and what they list."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from hybrid.core.models.base import Labels, Model, Shape
from hybrid.core.models.ray_options import RayOptions


class Market(StrEnum):
    """How an instance is bought."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"


class Offer(Model):
    """An instance type at one place and price.

    Attributes:
        offer_id: Unique and stable: `provider/region/zone/instance_type/market`, without the
            parts that the provider does not have.
        shape: Ray resources of one node of it.
        accelerator: GPU type, or `""` when it has none or only logical ones.
        gpu_count: GPUs of one instance.
        usd_per_hour: Price of one instance. Greater than 0; an unknown price is no offer.
        stock_count: How many more can be had now; `None` when the cloud does not say.
        max_count: Our own limit on instances of this offer; `None` for no limit.
        max_gang: Instances of it that one call can rent, all or none.
        boot_s: Expected time from launch to node, until it is learned.
        rank: Place in the configuration's `ordered` list; 0 when the cheapest wins.
    """

    offer_id: str
    provider: str
    region: str = ""
    zone: str = ""
    instance_type: str
    market: Market = Market.ON_DEMAND
    shape: Shape
    labels: Labels = Field(default_factory=dict)
    accelerator: str = ""
    gpu_count: int = Field(default=0, ge=0)
    usd_per_hour: float = Field(gt=0, allow_inf_nan=False)
    stock_count: int | None = Field(default=None, ge=0)
    max_count: int | None = Field(default=None, ge=0)
    max_gang: int = Field(default=1, ge=1)
    boot_s: float = Field(default=240.0, ge=0)
    rank: int = Field(default=0, ge=0)


class CloudState(StrEnum):
    """An instance's state in the cloud's own words, reduced to what matters to us."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    GONE = "gone"


class CloudInstance(Model):
    """One instance that carries our owner tags, as the cloud lists it.

    Attributes:
        instance_id: Our id, read back from its tag.
        provider_id: The cloud's id.
        launched_at_s: By the cloud's clock.
        expires_at_s: The expiry the cloud or the node itself will act on, if known.
        offer_mark: What it was rented as, read back from its tag; see `core.tags`.
        problem: Why the node cannot work, when it said so (`ray start` failed, ...).
    """

    instance_id: str
    provider_id: str
    state: CloudState
    launched_at_s: float
    expires_at_s: float | None = None
    offer_mark: str = ""
    problem: str = ""


class LaunchSpec(Model):
    """Everything a launch needs beside its offer. Frozen with the token; holds no secret.

    Attributes:
        gang: Ids of all instances that are rented in the same call, in its order; empty for
            one alone.
        head_address: `host:port` of Ray's GCS.
        controller_url: Where the node trades its join token for the cluster's secrets.
        labels: All labels of the node.
        expires_at_s: First expiry; the node ends itself then unless it is extended.
        ray: How Ray runs on every node of the cluster.
        tags: Owner tags that go inside the create call.
    """

    cluster_id: str
    instance_id: str
    gang: tuple[str, ...] = ()
    attempt: int = Field(default=1, ge=1)
    epoch: int = Field(ge=1)
    head_address: str
    controller_url: str
    labels: Labels
    expires_at_s: float
    ray_version: str
    python_version: str
    ray: RayOptions = Field(default_factory=RayOptions)
    tags: Labels = Field(default_factory=dict)
