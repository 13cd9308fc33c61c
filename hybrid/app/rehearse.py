"""What the policy does for some waiting work, by the configuration alone: no cluster, no cloud."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hybrid.app.base import head_labels, head_shape, host_labels, host_shape
from hybrid.app.offline import NOT_ASKED, PoolOffer
from hybrid.app.translate import policy_params
from hybrid.core import gpu_names
from hybrid.core.cost import commitment
from hybrid.core.models import (
    Demand,
    Instance,
    InstanceState,
    LaunchSpec,
    Node,
    NodeStatus,
    Offer,
    Reason,
    Shape,
)
from hybrid.core.offline import OfflinePlanView, RentedView, SparedView
from hybrid.core.policy.decide import decide
from hybrid.core.policy.market import Market
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Launch, Plan, Snapshot
from hybrid.core.policy.room import Axis
from hybrid.core.policy.words import plural, shape_text
from hybrid.core.quantity import GpuRequest
from hybrid.settings import Settings

_SERVED_BY_HOME = ("capacity_free", "capacity_coming")
_RAYS_SHARE = 0.001
"""What a task with `accelerator_type` asks of the node's one: Ray's own number."""


@dataclass(frozen=True)
class Question:
    """The waiting work.

    Attributes:
        shape: Of one request.
        count: How many of it wait.
        is_home_busy: Your own machines have no room left.
    """

    shape: Shape
    count: int
    is_home_busy: bool = False


def request_for(gpus: GpuRequest, settings: Settings, offered: Sequence[PoolOffer]) -> Shape:
    """Return what a task that wants these GPUs asks Ray for, such as `{"GPU": 8}`.

    A type is named as the machines of the configuration name it.
    """
    if not gpus.accelerator:
        return {"GPU": gpus.count}
    shapes = [*(host_shape(host) for host in settings.onprem.hosts), *_shapes(offered)]
    there = {name for shape in shapes for name in shape}
    spellings = (gpus.accelerator, gpu_names.named(gpus.accelerator))
    names = [f"accelerator_type:{spelling}" for spelling in spellings]
    usual = f"accelerator_type:{gpu_names.ray_type(spellings[1])}"
    return {"GPU": gpus.count, next((n for n in names if n in there), usual): _RAYS_SHARE}


def rehearse(
    settings: Settings, offered: Sequence[PoolOffer], question: Question
) -> OfflinePlanView:
    """Return what `decide` makes of the question. Equal arguments give equal answers."""
    params = _params(settings, question)
    snapshot = _snapshot(settings, offered, question, params)
    plan = decide(snapshot, params)
    launches = [action for action in plan.actions if isinstance(action, Launch)]
    after = _after(snapshot, launches, params)
    rented = tuple(_rented(offered, launches))
    counts = _counts(plan)
    waiting = question.count - counts["home"] - counts["cloud"]
    per_tick = settings.burst.launches_per_tick
    return OfflinePlanView(
        cluster=settings.name,
        source=settings.source,
        summary=_summary(question, counts, waiting, launches),
        shape=question.shape,
        count=question.count,
        is_home_busy=question.is_home_busy,
        home_count=counts["home"],
        cloud_count=counts["cloud"],
        waiting_count=waiting,
        rented=rented,
        usd_per_hour=math.fsum(item.usd_per_hour for item in rented),
        tick_count=math.ceil(len(launches) / per_tick),
        findings=tuple(f for f in plan.findings if f.reason.code not in _SERVED_BY_HOME),
        spared=tuple(_spared(offered, launches, after, params, question)),
        notes=tuple(_notes(settings, offered, question)),
    )


def _params(settings: Settings, question: Question) -> PolicyParams:
    """Return the policy's thresholds as if all ticks that it needs were one."""
    params = policy_params(settings)
    at_once = max(params.launches_per_tick, question.count)
    return params.model_copy(update={"launches_per_tick": at_once, "first_wave_count": at_once})


def _snapshot(
    settings: Settings, offered: Sequence[PoolOffer], question: Question, params: PolicyParams
) -> Snapshot:
    """Return a moment at which the queue limit has been broken for long enough."""
    since_s = params.max_wait_s + 1.0
    now_s = since_s + params.stabilisation_s
    return Snapshot(
        now_s=now_s,
        nodes=tuple(_nodes(settings, is_busy=question.is_home_busy)),
        demands=(Demand(shape=question.shape, count=question.count, waiting_s=now_s),),
        offers=tuple(item.offer for item in offered if item.offer is not None),
        caps=settings.caps,
        breach_since_s=since_s,
    )


def _nodes(settings: Settings, *, is_busy: bool) -> Iterator[Node]:
    def node(name: str, shape: Shape, labels: Mapping[str, str], *, is_head: bool = False) -> Node:
        return Node(
            node_id=name,
            host="" if is_head else name,
            labels=labels,
            total=shape,
            available=dict.fromkeys(shape, 0.0) if is_busy else shape,
            status=NodeStatus.RUNNING if is_busy else NodeStatus.IDLE,
            is_head=is_head,
        )

    yield node("head", head_shape(settings.head), head_labels(), is_head=True)
    for host in settings.onprem.hosts:
        yield node(host.name, host_shape(host), host_labels(host))


def _after(snapshot: Snapshot, launches: Sequence[Launch], params: PolicyParams) -> Snapshot:
    """Return the same moment with what was launched, to ask why there is not more."""
    instances = tuple(_instance(n, launch, snapshot.now_s) for n, launch in enumerate(launches))
    # As the policy counts launches: with their least life and the way home.
    exit_s = params.min_life_s + params.exit_s
    return snapshot.model_copy(
        update={
            "instances": instances,
            "commitment": commitment(instances, (), now_s=snapshot.now_s, exit_s=exit_s),
            "offers": tuple(_left(offer, launches) for offer in snapshot.offers),
        }
    )


def _instance(number: int, launch: Launch, now_s: float) -> Instance:
    spec = LaunchSpec(
        cluster_id="offline",
        instance_id=f"i-{number}",
        epoch=1,
        head_address="",
        controller_url="",
        labels={},
        expires_at_s=now_s,
        ray_version="",
        python_version="",
    )
    return Instance(
        instance_id=spec.instance_id,
        offer=launch.offer,
        spec=spec,
        token="",
        state=InstanceState.REQUESTED,
        state_at_s=now_s,
        created_at_s=now_s,
        reason=launch.reason,
    )


def _left(offer: Offer, launches: Sequence[Launch]) -> Offer:
    if offer.stock_count is None:
        return offer
    taken = sum(launch.offer.offer_id == offer.offer_id for launch in launches)
    return offer.model_copy(update={"stock_count": max(0, offer.stock_count - taken)})


def _rented(offered: Sequence[PoolOffer], launches: Sequence[Launch]) -> Iterator[RentedView]:
    views = {item.view.offer_id: item.view for item in offered}
    first = {launch.offer.offer_id: launch for launch in reversed(launches)}
    counts = Counter(launch.offer.offer_id for launch in launches)
    for offer_id, count in counts.items():
        launch = first[offer_id]
        yield RentedView(
            pool=views[offer_id],
            count=count,
            usd_per_hour=count * launch.offer.usd_per_hour,
            reason=launch.reason,
        )


def _spared(
    offered: Sequence[PoolOffer],
    launches: Sequence[Launch],
    after: Snapshot,
    params: PolicyParams,
    question: Question,
) -> Iterator[SparedView]:
    """Yield each pool of which nothing is rented, and why."""
    rented = {launch.offer.offer_id for launch in launches}
    market = Market.of(after, params, Axis.of(after.demands))
    holding = {offer.offer_id for offer in market.holding(*after.demands)}
    for item in offered:
        if item.view.offer_id not in rented:
            why = item.view.reason or _why_not(item.offer, market, holding, question)
            yield SparedView(pool=item.view, reason=why)


def _why_not(offer: Offer | None, market: Market, holding: set[str], question: Question) -> Reason:
    if offer is None or offer.offer_id not in holding:
        has = shape_text(offer.shape) if offer else "nothing"
        words = f"one instance has {has}, and a request needs {shape_text(question.shape)}"
        return Reason(code="does_not_fit", message=words)
    refusal = market.why_not_one(offer)
    if refusal is not None:
        return Reason(code=refusal.code, message=refusal.message)
    return Reason(code="not_needed", message="what comes before it takes all the work")


def _counts(plan: Plan) -> Counter[str]:
    counts: Counter[str] = Counter()
    for finding in plan.findings:
        if finding.reason.code in _SERVED_BY_HOME:
            counts["home"] += finding.count
        elif finding.reason.code == "launching":
            counts["cloud"] += finding.count
    return counts


def _summary(
    question: Question, counts: Mapping[str, int], waiting: int, launches: Sequence[Launch]
) -> str:
    usd = math.fsum(launch.offer.usd_per_hour for launch in launches)
    home = "is full" if question.is_home_busy else "is free"
    parts = [f"{counts['home']} at home"]
    if launches:
        parts.append(f"{counts['cloud']} on {plural(len(launches), 'rented node')} at ${usd:.2f}/h")
    if waiting:
        parts.append(f"{waiting} go on waiting" if waiting != 1 else "1 goes on waiting")
    return (
        f"{plural(question.count, 'request')} for {shape_text(question.shape)}, home {home}: "
        f"{', '.join(parts)}."
    )


def _notes(settings: Settings, offered: Sequence[PoolOffer], question: Question) -> Iterator[str]:
    if offered:
        yield f"No cloud was asked, so these are not known: {', '.join(NOT_ASKED)}."
        yield "Nothing is counted as rented or spent already, and no offer as resting."
    for name in ("CPU", "memory"):
        uncounted = [h.name for h in settings.onprem.hosts if name not in host_shape(h)]
        if question.shape.get(name) and uncounted:
            yield (
                f"The {name} of {', '.join(uncounted)} is not in the file, since Ray counts it "
                "at the start; here such a host takes no request that needs it."
            )


def _shapes(offered: Sequence[PoolOffer]) -> Iterator[Shape]:
    for item in offered:
        if item.offer is not None:
            yield item.offer.shape
