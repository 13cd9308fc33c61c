"""Builders of values for tests of the pure core. Each takes only what a test is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import settings

from hybrid.core.models import (
    CloudInstance,
    CloudState,
    Demand,
    Gang,
    Instance,
    InstanceState,
    LabelConstraint,
    LaunchSpec,
    Node,
    NodeStatus,
    Offer,
    OfferFailure,
    Reason,
    Selector,
    Spread,
)
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Snapshot, Source

laws = settings(max_examples=60, deadline=None, derandomize=True, database=None)
"""Stable and modest: CI sees the same examples each time, whatever the machine's load."""

NOW_S = 100_000.0
REASON = Reason(code="queue_wait", message="work waits")


def rule(key: str, *values: str, is_negated: bool = False) -> LabelConstraint:
    return LabelConstraint(key=key, values=values, is_negated=is_negated)


ONPREM: Selector = (rule("site", "onprem"),)
CLOUD: Selector = (rule("site", "cloud"),)
NOT_CLOUD: Selector = (rule("site", "cloud", is_negated=True),)


def shape(gpus: float = 0, **more: float) -> dict[str, float]:
    """Return `{"GPU": gpus, ...}` without the zeros."""
    return {name: float(v) for name, v in {"GPU": gpus, **more}.items() if v}


def make_demand(
    gpus: float = 1,
    count: int = 1,
    *selectors: Selector,
    waiting_s: float | None = 0.0,
    **more: float,
) -> Demand:
    return Demand(shape=shape(gpus, **more), count=count, selectors=selectors, waiting_s=waiting_s)


def make_gang(
    *bundles: Demand,
    spread: Spread = Spread.PACK,
    waiting_s: float | None = 0.0,
    gang_id: str = "g-1",
) -> Gang:
    """Return a gang; its bundles' own ages are unknown, as the Ray adapter leaves them."""
    bare = tuple(b.model_copy(update={"waiting_s": None}) for b in bundles)
    return Gang(gang_id=gang_id, bundles=bare, spread=spread, waiting_s=waiting_s)


def make_node(
    name: str = "h-1",
    gpus: float = 4,
    *,
    free: float | None = None,
    status: NodeStatus | None = None,
    idle_s: float | None = None,
    instance_id: str = "",
    labels: Mapping[str, str] | None = None,
    **more: float,
) -> Node:
    """Return an on-prem node, or with `instance_id` a rented one; busy unless all is free."""
    is_busy = free is not None and free < gpus
    return Node(
        node_id=f"node-{name}",
        instance_id=instance_id,
        host="" if instance_id else name,
        labels={"site": "cloud" if instance_id else "onprem", **(labels or {})},
        total=shape(gpus, **more),
        available={**shape(gpus, **more), "GPU": gpus if free is None else free},
        status=status or (NodeStatus.RUNNING if is_busy else NodeStatus.IDLE),
        idle_s=None if is_busy else (0.0 if idle_s is None else idle_s),
    )


def make_offer(
    offer_id: str = "a",
    gpus: int = 4,
    usd: float = 4.0,
    *,
    provider: str = "sim",
    stock: int | None = None,
    max_count: int | None = None,
    rank: int = 0,
    labels: Mapping[str, str] | None = None,
    accelerator: str = "",
    **more: float,
) -> Offer:
    return Offer(
        offer_id=offer_id,
        provider=provider,
        instance_type=offer_id,
        shape=shape(gpus, **more),
        gpu_count=gpus,
        usd_per_hour=usd,
        stock_count=stock,
        max_count=max_count,
        rank=rank,
        labels=labels or {},
        accelerator=accelerator,
    )


def make_instance(
    instance_id: str = "i-1",
    state: InstanceState = InstanceState.RUNNING,
    *,
    offer: Offer | None = None,
    age_s: float = 10_000.0,
    now_s: float = NOW_S,
    **changes: Any,
) -> Instance:
    created_at_s = now_s - age_s
    instance = Instance(
        instance_id=instance_id,
        offer=offer or make_offer(),
        spec=LaunchSpec(
            cluster_id="c-1",
            instance_id=instance_id,
            epoch=1,
            head_address="127.0.0.1:1",
            controller_url="http://127.0.0.1:2",
            labels={},
            expires_at_s=created_at_s + 3600.0,
            ray_version="2.60.0",
            python_version="3.11.7",
        ),
        token=f"t-{instance_id}",
        state=state,
        state_at_s=created_at_s,
        created_at_s=created_at_s,
        reason=REASON,
        provider_id="" if state is InstanceState.REQUESTED else f"p-{instance_id}",
    )
    return instance.model_copy(update=changes)


def make_rented(
    instance_id: str = "i-1",
    *,
    free: float | None = None,
    idle_s: float | None = None,
    status: NodeStatus | None = None,
    offer: Offer | None = None,
    age_s: float = 10_000.0,
    **changes: Any,
) -> tuple[Instance, Node]:
    """Return a running instance and its node."""
    offer = offer or make_offer()
    instance = make_instance(instance_id, offer=offer, age_s=age_s, **changes)
    node = make_node(
        instance_id,
        offer.gpu_count,
        free=free,
        idle_s=idle_s,
        status=status,
        instance_id=instance_id,
    )
    return instance, node


def make_cloud(
    state: CloudState = CloudState.RUNNING, *, instance_id: str = "i-1", problem: str = ""
) -> CloudInstance:
    return CloudInstance(
        instance_id=instance_id,
        provider_id=f"p-{instance_id}",
        state=state,
        launched_at_s=NOW_S - 10_000.0,
        problem=problem,
    )


def make_failure(offer_id: str = "a", *, until_s: float = NOW_S + 100.0) -> OfferFailure:
    return OfferFailure(
        key=offer_id, failure_count=1, until_s=until_s, error="CapacityError", message="full"
    )


def blind(name: str = "provider:sim") -> Source:
    return Source(name=name, is_up=False, problem="no route to host")


def make_snapshot(**changes: Any) -> Snapshot:
    """Return a snapshot at `NOW_S` whose queue limit, if broken, has been so for long."""
    return Snapshot.model_validate({"now_s": NOW_S, "breach_since_s": 0.0, **changes})


def make_params(**changes: Any) -> PolicyParams:
    return PolicyParams.model_validate(
        {"launches_per_tick": 1_000, "first_wave_count": 1_000, **changes}
    )
