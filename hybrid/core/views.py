"""The shapes that `--json` and the HTTP API answer with. Stable: fields are only added.

Every instant is in seconds since the epoch (`_at_s`), every duration in seconds (`_s`), every
price in US dollars. `None` means unknown, never zero.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from pydantic import Field

from hybrid.core.models import Caps, Commitment, Event, Job, Labels, Model, Reason, Shape
from hybrid.core.models.withheld import Withheld
from hybrid.core.policy.plan import Action, Finding, Source
from hybrid.core.ports import Mode
from hybrid.core.prices import PriceSource
from hybrid.core.rests import RestView

API_VERSION = 1


class NodeView(Model):
    """A Ray node, or an on-prem host or rented instance that is not a node yet.

    Attributes:
        name: Host name on-prem, instance id in the cloud, `head` for the head.
        site: `onprem` or `cloud`.
        state: `joining`, `idle`, `busy`, `draining`, `failed`, or an instance state.
        why: Why it is in this state; for a node that is not idle, what Ray says keeps it so.
        gpus_used: `None` when the node is not seen in Ray.
        usd_per_hour: `None` for on-prem nodes: their price is not known, and it is not zero.
        since_at_s: When it was rented; for an on-prem node, when it joined.
    """

    name: str
    site: str
    provider: str = ""
    node_id: str = ""
    instance_type: str = ""
    state: str
    why: str = ""
    gpus_total: float = 0.0
    gpus_used: float | None = None
    cpus_total: float = 0.0
    cpus_used: float | None = None
    idle_s: float | None = None
    usd_per_hour: float | None = None
    since_at_s: float | None = None
    labels: Labels = Field(default_factory=dict)


class InstanceView(Model):
    """A rented instance, from intent to end."""

    instance_id: str
    provider: str
    provider_id: str = ""
    offer_id: str
    instance_type: str
    market: str
    state: str
    reason: Reason
    gpu_count: int
    usd_per_hour: float
    cost_usd: float
    created_at_s: float
    joined_at_s: float | None = None
    state_at_s: float
    deadline_at_s: float | None = None
    lease_until_s: float | None = None
    ended_at_s: float | None = None
    node_id: str = ""
    problem: str = ""
    quarantine: str = ""


class DemandView(Model):
    """Work that waits: one shape, at one choice of places.

    Attributes:
        sites: Which of `onprem` and `cloud` may run it.
        where: Label selectors that say where it may run, the preferred first, in Ray's notation.
    """

    shape: Shape
    count: int
    sites: tuple[str, ...] = ()
    where: str = ""
    waiting_s: float | None = None
    gang_id: str = ""


class PlanView(Model):
    """The last decision.

    Attributes:
        resting: What failed and is left alone for a while.
        withheld: Pools that are no offer now, such as a spot pool whose price nobody knows.
    """

    at_s: float | None = None
    summary: str = ""
    actions: tuple[Action, ...] = ()
    findings: tuple[Finding, ...] = ()
    resting: tuple[RestView, ...] = ()
    withheld: tuple[Withheld, ...] = ()


class Alarm(Model):
    """Something a person should look at.

    Attributes:
        code: Stable word.
        what: One sentence: what is wrong and what to do.
        since_at_s: When it was first seen.
    """

    code: str
    subject: str = ""
    what: str
    since_at_s: float


class ClusterInfo(Model):
    """Which cluster this is."""

    name: str
    cluster_id: str
    version: str
    ray_version: str
    python_version: str
    head_address: str = ""
    dashboard_url: str = ""
    config_path: str = ""
    started_at_s: float


class ControllerInfo(Model):
    """How the controller itself is doing.

    Attributes:
        state: `starting`, `ready`, `degraded` (its last tick failed; it goes on trying), `stalled`
            (no full tick for too long) or `closing`.
        phase: What it is doing now, in words, while starting or closing; why, when degraded.
    """

    pid: int
    epoch: int
    state: str
    phase: str = ""
    tick_count: int = 0
    last_tick_at_s: float | None = None
    tick_s: float | None = None


class JobCounts(Model):
    """Jobs by state."""

    queued: int = 0
    submitted: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0


class BudgetView(Model):
    """Caps, and what is promised and spent against them."""

    caps: Caps
    now: Commitment


class SloView(Model):
    """A service and its promise: a percentile of its latency stays at or below a target.

    Attributes:
        state: `met`, `broken` or `unknown`.
        since_at_s: Since when.
        measured_ms: The percentile, over the window; `null` when unknown.
        why: What was measured, or why nothing is known.
        running_count: Replicas that serve.
        wanted_count: Replicas that Ray Serve wants now.
        ahead_count: Missing replicas that nodes are wanted for at once.
        ahead_why: Why these do not wait their turn.
        loan_count: Replicas for which GPUs of batch jobs at home are borrowed.
        loan_why: The last that was decided about loans.
    """

    name: str
    app: str
    deployment: str = ""
    percentile: float
    target_ms: float
    window_s: float
    state: str
    since_at_s: float | None = None
    measured_ms: float | None = None
    rate_rps: float | None = None
    why: str = ""
    running_count: int | None = None
    wanted_count: int | None = None
    ahead_count: int = 0
    ahead_why: str = ""
    loan_count: int = 0
    loan_why: str = ""


class StatusView(Model):
    """`hybrid status --json`: the whole cluster on one page.

    Attributes:
        at_s: When this answer was given; `controller.last_tick_at_s` is when the controller
            last looked.
    """

    api_version: int = API_VERSION
    at_s: float
    summary: str
    is_bursting: bool
    cluster: ClusterInfo
    controller: ControllerInfo
    mode: Mode
    nodes: tuple[NodeView, ...] = ()
    instances: tuple[InstanceView, ...] = ()
    demand: tuple[DemandView, ...] = ()
    plan: PlanView = Field(default_factory=PlanView)
    budget: BudgetView
    jobs: JobCounts = Field(default_factory=JobCounts)
    services: tuple[SloView, ...] = ()
    sources: tuple[Source, ...] = ()
    alarms: tuple[Alarm, ...] = ()


class NodesView(Model):
    """`hybrid nodes --json`."""

    api_version: int = API_VERSION
    at_s: float
    nodes: tuple[NodeView, ...]


class InstancesView(Model):
    """All instances of the ledger, newest first."""

    api_version: int = API_VERSION
    at_s: float
    instances: tuple[InstanceView, ...]


class JobsView(Model):
    """`hybrid jobs --json`, newest first."""

    api_version: int = API_VERSION
    at_s: float
    jobs: tuple[Job, ...]


class AttemptPlace(Model):
    """Where an attempt of a job was placed.

    Attributes:
        nodes: Names of its nodes: of hosts, or ids of instances; Ray's id for one that is
            not known any more.
        sites: Of these nodes, `""` where it is not known.
        why: The policy's word on it.
    """

    attempt: int
    at_s: float
    nodes: tuple[str, ...]
    sites: tuple[str, ...]
    why: str


class TaskPlace(Model):
    """Tasks or actors of one name that ran on one node."""

    node: str
    site: str
    kind: str
    name: str
    count: int


class AuditView(Model):
    """`hybrid audit JOB --json`: where a job and all that it started ran.

    Attributes:
        attempts: From our own records; kept for ever.
        tasks: From Ray, as long as it remembers.
        is_complete: Whether Ray named all tasks that it remembers.
        notes: What this answer cannot know.
    """

    api_version: int = API_VERSION
    at_s: float
    job_id: str
    site: str
    attempts: tuple[AttemptPlace, ...]
    tasks: tuple[TaskPlace, ...]
    is_complete: bool
    notes: tuple[str, ...] = ()


class DataShipmentView(Model):
    """What it takes to bring a job's data to one place.

    Attributes:
        seconds: `None`: a size or a speed is not known.
        usd: What leaving other places costs; `None`: a size that has a price is not known.
    """

    place: str
    seconds: float | None
    usd: float | None
    unknown: tuple[str, ...] = ()


class DataPlanView(Model):
    """`hybrid data plan --json`: shipping a job's data against waiting for home.

    Attributes:
        size_gb: Of all of it, in GB (10^9 bytes); `None`: not known.
        is_burst: Whether going out is faster than waiting.
    """

    api_version: int = API_VERSION
    size_gb: float | None
    wait_s: float | None
    shipments: tuple[DataShipmentView, ...]
    is_burst: bool
    why: str


class EventsView(Model):
    """`hybrid events --json`, oldest first.

    Attributes:
        next_seq: Pass as `after` to go on.
    """

    api_version: int = API_VERSION
    events: tuple[Event, ...]
    next_seq: int


class CostLine(Model):
    """Estimated cost of one group of instances.

    Attributes:
        key: What the group is: a provider, an offer or a reason.
        busy_usd: `None`: how much of it was used is not measured yet.
    """

    key: str
    instance_count: int
    gpu_hours: float
    usd: float
    busy_usd: float | None = None


class CostView(Model):
    """`hybrid cost --json`: an estimate from prices and times, not a bill."""

    api_version: int = API_VERSION
    at_s: float
    since_at_s: float
    total_usd: float
    running_usd_per_hour: float
    by_provider: tuple[CostLine, ...] = ()
    by_reason: tuple[CostLine, ...] = ()
    instances: tuple[InstanceView, ...] = ()
    budget: BudgetView
    notes: tuple[str, ...] = ()


class GcItem(Model):
    """An instance that carries our tags but has no live row, or a row with no instance."""

    provider: str
    provider_id: str
    instance_id: str
    age_s: float
    verdict: str
    is_terminated: bool = False


class GcView(Model):
    """`hybrid gc --json`."""

    api_version: int = API_VERSION
    at_s: float
    is_dry_run: bool
    items: tuple[GcItem, ...] = ()
    unreadable: tuple[Source, ...] = ()


class OfferView(Model):
    """A type of machine in one region, as it is bought on one market.

    Attributes:
        zones: Where in the region it is known to be; empty when nobody says.
        gpu: Name of its GPUs, the same for all clouds: `A100-80GB`, `H100`, `RTX-PRO-6000`.
        gpu_memory_gib: Memory of one GPU, in the words of the source.
        usd_per_hour: `null` when there is no usable price; `reason` then says why.
        price_per_hour: The same as the source has it, in `currency`.
        is_own: Whether the price is yours, from hybrid.yaml.
        source: Where the price is from: a `source_id`, or a place in hybrid.yaml.
        as_of: Day of the price; `null` for yours.
        reason: Why it is not eligible.
    """

    provider: str
    region: str = ""
    zones: tuple[str, ...] = ()
    instance_type: str
    market: str
    gpu: str = ""
    gpu_count: int = 0
    gpu_memory_gib: float | None = None
    vcpu_count: int | None = None
    memory_gib: float | None = None
    usd_per_hour: float | None = None
    usd_per_gpu_hour: float | None = None
    price_per_hour: float | None = None
    currency: str
    is_own: bool = False
    source: str
    as_of: dt.date | None = None
    reason: Reason | None = None


class OffersView(Model):
    """`hybrid offers --json`: what the clouds rent, from price lists, without asking them.

    Attributes:
        offers: What fits and has a usable price, the cheapest first.
        more_count: How many more there are beyond `--limit`.
        ineligible: What fits but has no usable price, with reasons; with `--all` only.
        ineligible_count_by_code: How many those are, by the code of their reason; always.
        max_age_s: Older prices are not used.
        rates: Units of a currency for one US dollar, as far as they were given.
        sources: Where the prices are from.
        cluster: The running cluster that `resting` and `withheld` are of; `""` for none.
        resting: What failed in it and is left alone for a while.
        withheld: Its pools that are no offer now; without a cluster those of hybrid.yaml, by the
            catalog alone.
    """

    api_version: int = API_VERSION
    at_s: float
    offers: tuple[OfferView, ...] = ()
    more_count: int = 0
    ineligible: tuple[OfferView, ...] = ()
    ineligible_count_by_code: Mapping[str, int] = Field(default_factory=dict)
    max_age_s: float
    rates: Mapping[str, float] = Field(default_factory=dict)
    sources: tuple[PriceSource, ...] = ()
    cluster: str = ""
    resting: tuple[RestView, ...] = ()
    withheld: tuple[Withheld, ...] = ()


class Accepted(Model):
    """Answer to a command that the loop carries out.

    Attributes:
        message: What will happen, in one sentence.
    """

    is_ok: bool = True
    message: str = ""
    facts: Mapping[str, object] = Field(default_factory=dict)
