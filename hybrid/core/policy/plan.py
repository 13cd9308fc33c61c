"""What the policy sees and what it answers: `Snapshot` in, `Plan` out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from hybrid.core.models import (
    Caps,
    Commitment,
    Demand,
    Gang,
    Instance,
    Model,
    Node,
    Offer,
    OfferFailure,
    Reason,
    Shape,
)
from hybrid.core.models.work import JobView, Slot
from hybrid.core.ports import Mode


class Source(Model):
    """Whether something we must see to decide can be seen.

    Attributes:
        name: `ray`, `ledger`, or `provider:<name>`.
        is_up: Whether the last look succeeded.
        problem: Why not.
        seen_at_s: When it was last seen; `None` when never.
    """

    name: str
    is_up: bool
    problem: str = ""
    seen_at_s: float | None = None


class Host(Model):
    """An on-prem host that is expected to be a node.

    Attributes:
        is_coming: It is joining now, so its capacity counts as in flight.
    """

    name: str
    shape: Shape
    labels: Mapping[str, str] = Field(default_factory=dict)
    is_coming: bool = False


class Starts(Model):
    """How first starts of jobs went of late; what is long ago counts little.

    Attributes:
        count: First starts.
        late_count: Those after a longer wait than the policy's `wait_target_s`.
        waited_count: Jobs that found no place at home when they came.
        soon_count: Those of them that got one there soon.
        resumed_count: Suspended jobs that went on.
        resumed_out_count: Those of them that had to be rented for.
    """

    count: float = Field(ge=0)
    late_count: float = Field(ge=0)
    waited_count: float = Field(default=0.0, ge=0)
    soon_count: float = Field(default=0.0, ge=0)
    resumed_count: float = Field(default=0.0, ge=0)
    resumed_out_count: float = Field(default=0.0, ge=0)


class Loan(Model):
    """What a service borrows of the GPUs at home, beyond what its replicas already hold.

    Attributes:
        shape: What one replica needs of a node.
        count: Replicas that have no place yet.
        priority: They rank like a waiting job of this priority.
    """

    service: str
    shape: Shape
    count: int = Field(gt=0)
    priority: int = Field(default=50, ge=0, le=100)


class Snapshot(Model):
    """Everything one decision depends on. Equal snapshots give equal plans.

    Attributes:
        demands, gangs: Waiting work of which only Ray knows, with ages.
        jobs: Work of our own queue, waiting and running. Ray has none of the waiting ones.
        loans: What services borrow of the GPUs at home.
        instances: Rented instances not proved gone.
        offers: What can be rented; the policy drops those in `failures` until their time.
        boot_s_by_offer: Learned 95th percentile of launch to node, seconds.
        starts: How long jobs waited of late; `None` when not known.
        home_release_gpus_per_s: How many GPUs jobs at home freed by ending, per second, of late;
            `None` when it is not known, and then nobody waits for it.
        usual_day_share: Share of a day's money that is usually spent by now, 0 to 1; `None` when
            not known, and then nothing is paced.
        takebacks: How many spot machines were taken back of late, by zone (see
            `hybrid.core.scopes.scope_key`); what is long ago counts little.
        breach_since_s: When the queue limit was first found broken, or `None`.
        blind: Sources that could not be read.
        unread: Providers whose offers were never read, so `offers` may lack theirs.
        tick_id: For tracing; decides nothing.
    """

    now_s: float
    nodes: tuple[Node, ...] = ()
    hosts: tuple[Host, ...] = ()
    demands: tuple[Demand, ...] = ()
    gangs: tuple[Gang, ...] = ()
    jobs: tuple[JobView, ...] = ()
    loans: tuple[Loan, ...] = ()
    instances: tuple[Instance, ...] = ()
    offers: tuple[Offer, ...] = ()
    failures: tuple[OfferFailure, ...] = ()
    boot_s_by_offer: Mapping[str, float] = Field(default_factory=dict)
    caps: Caps = Field(default_factory=Caps)
    commitment: Commitment = Field(default_factory=Commitment)
    starts: Starts | None = None
    home_release_gpus_per_s: float | None = None
    usual_day_share: float | None = Field(default=None, ge=0, le=1)
    takebacks: Mapping[str, float] = Field(default_factory=dict)
    breach_since_s: float | None = None
    blind: tuple[Source, ...] = ()
    unread: tuple[Source, ...] = ()
    mode: Mode = Field(default_factory=Mode)
    tick_id: int = 0


class Launch(Model):
    """Rent one instance of an offer.

    Attributes:
        gang: Launches of one plan with the same number are of use together only; 0 for one
            that is of use alone.
    """

    kind: Literal["launch"] = "launch"
    offer: Offer
    reason: Reason
    gang: int = Field(default=0, ge=0)


class Drain(Model):
    """Bring a running instance home: no new work, then end it.

    Attributes:
        is_busy: Work runs on it: drain with a deadline, which cannot be refused. Otherwise
            Ray is asked to end it only if it is still idle.
        deadline_at_s: When it is ended whatever still runs.
    """

    kind: Literal["drain"] = "drain"
    instance_id: str
    is_busy: bool = False
    deadline_at_s: float
    reason: Reason


class Terminate(Model):
    """End an instance that has no node yet."""

    kind: Literal["terminate"] = "terminate"
    instance_id: str
    reason: Reason


class Start(Model):
    """Start a waiting job on these nodes, or let it go on there from its checkpoint.

    A node may still be held by a job that this plan stops: then it starts when that is saved.
    """

    kind: Literal["start"] = "start"
    job_id: str
    slots: tuple[Slot, ...]
    reason: Reason


class Suspend(Model):
    """Let a running job save, stop, and wait in the queue."""

    kind: Literal["suspend"] = "suspend"
    job_id: str
    reason: Reason


class Move(Model):
    """Let a running job save, stop, and go on at once on other nodes.

    Attributes:
        purpose: `pack`: within the site, to make room in one piece; `home`: from rented nodes;
            `exchange`: to a rented node, so that a job that cannot move gets its place.
    """

    kind: Literal["move"] = "move"
    job_id: str
    slots: tuple[Slot, ...]
    purpose: Literal["pack", "home", "exchange"]
    reason: Reason


Action: TypeAlias = Annotated[
    Launch | Drain | Terminate | Start | Suspend | Move, Field(discriminator="kind")
]


class Finding(Model):
    """Why some waiting work gets nothing in this plan, or what it gets.

    Attributes:
        shape: Of one request, or the sum over a gang.
        count: Requests (or gangs) in this finding.
        gang_id: The placement group, when it is one.
        where: Label selectors that say where it may run, the preferred first, in Ray's notation.
        is_for_ever: No node or offer can ever hold it as things are configured.
        reason: Machine word, sentence and numbers.
    """

    shape: Shape
    count: int
    gang_id: str = ""
    where: str = ""
    waiting_s: float | None = None
    is_for_ever: bool = False
    reason: Reason


class Plan(Model):
    """What to do now and why, and why not more.

    Attributes:
        breach_since_s: To be handed back in the next snapshot.
        summary: One sentence for people.
    """

    actions: tuple[Action, ...] = ()
    findings: tuple[Finding, ...] = ()
    breach_since_s: float | None = None
    summary: str = ""
