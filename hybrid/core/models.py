"""The values everything speaks in. Frozen, validated, and also the stored and logged form."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Shape: TypeAlias = Mapping[str, float]
"""Ray resource name -> amount, for one node or one task; `memory` is in bytes, as in Ray."""

Labels: TypeAlias = Mapping[str, str]
"""Ray node labels: key -> value."""


class Model(BaseModel):
    """A frozen value that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# --- what work asks for -------------------------------------------------------------------


class LabelConstraint(Model):
    """One label rule: the node's value is (or is not) one of `values`.

    As in Ray, a negated rule also admits nodes that lack the label.
    """

    key: str
    values: tuple[str, ...]
    is_negated: bool = False


Selector: TypeAlias = tuple[LabelConstraint, ...]
"""Rules that must all hold. The empty selector admits every node."""


class Demand(Model):
    """Identical requests that Ray cannot place now (tasks and actors).

    Attributes:
        shape: What one request needs.
        count: How many such requests wait, at least 1.
        selectors: Acceptable places, the preferred first; empty means anywhere.
        waiting_s: Age of the oldest of them, or `None` when it is not known yet. An upper
            bound, from counts seen over time (see `core.waiting`).
    """

    shape: Shape
    count: int = Field(ge=1)
    selectors: tuple[Selector, ...] = ()
    waiting_s: float | None = None


class Spread(StrEnum):
    """How the bundles of a gang may share nodes; Ray's placement strategies."""

    PACK = "PACK"
    SPREAD = "SPREAD"
    STRICT_PACK = "STRICT_PACK"
    STRICT_SPREAD = "STRICT_SPREAD"


class Gang(Model):
    """A placement group that waits: all of its bundles at once, or none.

    Attributes:
        gang_id: Ray's placement group id.
        bundles: Shape and acceptable places of each bundle.
        spread: How bundles may share nodes.
        waiting_s: As in `Demand`.
    """

    gang_id: str
    bundles: tuple[Demand, ...] = Field(min_length=1)
    spread: Spread = Spread.PACK
    waiting_s: float | None = None


# --- what is there ------------------------------------------------------------------------


class NodeStatus(StrEnum):
    """A Ray node's status, as the head sees it."""

    RUNNING = "running"
    IDLE = "idle"
    DRAINING = "draining"
    DEAD = "dead"


class Node(Model):
    """A member of the Ray cluster.

    Attributes:
        node_id: Ray's id, hex.
        instance_id: Our id of the rented instance it runs on; `""` for on-prem nodes.
        host: Name of the on-prem host; `""` for rented nodes.
        idle_s: How long Ray has seen it without work, objects or placement groups;
            `None` when busy or unknown.
        activity: Ray's own words on why it is not idle.
    """

    node_id: str
    instance_id: str = ""
    host: str = ""
    labels: Labels = Field(default_factory=dict)
    total: Shape
    available: Shape
    status: NodeStatus
    idle_s: float | None = None
    activity: tuple[str, ...] = ()
    is_head: bool = False


class ClusterView(Model):
    """What Ray says at one moment."""

    nodes: tuple[Node, ...] = ()
    demands: tuple[Demand, ...] = ()
    gangs: tuple[Gang, ...] = ()


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
        problem: Why the node cannot work, when it said so (`ray start` failed, ...).
    """

    instance_id: str
    provider_id: str
    state: CloudState
    launched_at_s: float
    expires_at_s: float | None = None
    problem: str = ""


class LaunchSpec(Model):
    """Everything a launch needs beside its offer. Frozen with the token; holds no secret.

    Attributes:
        head_address: `host:port` of Ray's GCS.
        controller_url: Where the node trades its join token for the cluster's secrets.
        labels: All labels of the node.
        expires_at_s: First expiry; the node ends itself then unless it is extended.
        tags: Owner tags that go inside the create call.
    """

    cluster_id: str
    instance_id: str
    attempt: int = Field(default=1, ge=1)
    epoch: int = Field(ge=1)
    head_address: str
    controller_url: str
    labels: Labels
    expires_at_s: float
    ray_version: str
    python_version: str
    tags: Labels = Field(default_factory=dict)


# --- the ledger's rows --------------------------------------------------------------------


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
    """Why and until when an offer is not tried again."""

    offer_id: str
    failure_count: int = Field(ge=1)
    until_s: float
    error: str
    message: str


# --- jobs ---------------------------------------------------------------------------------


class JobState(StrEnum):
    """Where a job is. `SUBMITTED` means Ray has it; `QUEUED` means only we do."""

    QUEUED = "queued"
    SUBMITTED = "submitted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will happen to the job."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class JobSpec(Model):
    """What a user asks to run.

    Attributes:
        entrypoint: Shell command of the driver, as in Ray Jobs.
        gpus, cpus, memory_bytes: What the driver process itself needs; tasks ask for theirs.
        site: Where the driver may run.
        package: Name of an uploaded working directory, or `""`.
        env: Environment of the driver and its workers.
        priority: 0 to 100, higher first. Kept for the queue; not used for order yet.
    """

    entrypoint: str = Field(min_length=1)
    name: str = ""
    gpus: float = Field(default=0, ge=0)
    cpus: float = Field(default=0, ge=0)
    memory_bytes: int = Field(default=0, ge=0)
    site: Literal["any", "onprem", "cloud"] = "any"
    package: str = ""
    env: Mapping[str, str] = Field(default_factory=dict)
    priority: int = Field(default=50, ge=0, le=100)
    user: str = ""
    tags: Labels = Field(default_factory=dict)


class Job(Model):
    """A job's row in the ledger; the truth also after Ray forgot it."""

    job_id: str
    spec: JobSpec
    state: JobState
    created_at_s: float
    state_at_s: float
    started_at_s: float | None = None
    ended_at_s: float | None = None
    is_cancel_asked: bool = False
    message: str = ""
