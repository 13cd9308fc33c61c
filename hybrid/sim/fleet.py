"""Nodes of the simulated cluster: those at home, and those rented, with their bill."""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field

from hybrid.core.models import (
    Instance,
    InstanceState,
    LaunchSpec,
    Node,
    NodeStatus,
    Offer,
    Reason,
)
from hybrid.sim.params import SimParams

_HOME = {"site": "onprem"}
# No lease is simulated. Not infinite, since a snapshot may be stored as JSON.
_FOR_EVER_S = 10.0**9


@dataclass(slots=True)
class Rented:
    """A rented node.

    Attributes:
        instance: As the ledger would have it.
        billed_from_s: When its bill begins.
        idle_since_s: Since when it has no work; `None` while it has or boots.
        held: GPUs of jobs that are being saved: they cost, and nobody may use them.
        busy_gpu_s: GPU-seconds with work, savings included.
    """

    instance: Instance
    gpus: int
    billed_from_s: float
    idle_since_s: float | None = None
    held: float = 0.0
    busy_gpu_s: float = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether it is a node."""
        return self.instance.state is InstanceState.RUNNING


@dataclass
class Bill:
    """Money, and what it was spent on.

    Attributes:
        usd: All of it.
        gpu_s: Billed GPU-seconds.
        usd_by_reason: By the code of the launch's reason.
    """

    params: SimParams
    usd: float = 0.0
    gpu_s: float = 0.0
    usd_by_reason: dict[str, float] = field(default_factory=dict)

    def close(self, node: Rented, now_s: float) -> None:
        """Add the whole bill of a node that is returned now."""
        end_s = now_s + self.params.bill_tail_s
        if end_s <= node.billed_from_s:
            return
        billed_s = max(self.params.bill_least_s, end_s - node.billed_from_s)
        usd = billed_s * node.instance.offer.usd_per_hour / 3600
        code = node.instance.reason.code
        self.usd += usd
        self.gpu_s += billed_s * node.gpus
        self.usd_by_reason[code] = self.usd_by_reason.get(code, 0.0) + usd

    def open_usd(self, nodes: dict[str, Rented], now_s: float) -> float:
        """Return what the nodes that are still rented have cost so far."""
        return sum(
            max(0.0, now_s - node.billed_from_s) * node.instance.offer.usd_per_hour / 3600
            for node in nodes.values()
        )


@dataclass
class Launches:
    """Draws how a launch goes, and counts."""

    params: SimParams
    random: random.Random
    count: int = 0
    failed: int = 0
    cancelled: int = 0
    flaps: int = 0
    _returned_at_s: deque[float] = field(default_factory=deque)

    def note_return(self, now_s: float) -> None:
        """Remember that a node was returned."""
        self._returned_at_s.append(now_s)

    def draw(self, now_s: float) -> tuple[bool, float]:
        """Return whether a launch succeeds, and when that is known."""
        boot = self.params.boot
        self.count += 1
        while self._returned_at_s and now_s - self._returned_at_s[0] >= self.params.flap_s:
            self._returned_at_s.popleft()
        self.flaps += bool(self._returned_at_s)
        is_failing = self.random.random() < boot.fail_share
        noise = math.exp(boot.sigma * self.random.gauss(0.0, 1.0))
        if is_failing:
            self.failed += 1
            return False, now_s + boot.alloc_s + boot.fail_s
        return True, now_s + boot.alloc_s + max(boot.least_s, boot.median_s * noise)


def offers_of(params: SimParams) -> tuple[Offer, ...]:
    """Return what can be rented."""
    return tuple(
        Offer(
            offer_id=f"sim/{size}x/on_demand",
            provider="sim",
            instance_type=f"{size}x",
            shape={"GPU": float(size)},
            gpu_count=size,
            usd_per_hour=size * params.usd_per_gpu_hour,
            boot_s=params.boot.expected_s,
        )
        for size in params.node_sizes
    )


def booting(instance_id: str, offer: Offer, reason: Reason, now_s: float) -> Instance:
    """Return the ledger's row of an instance that was asked for now."""
    spec = LaunchSpec(
        cluster_id="sim",
        instance_id=instance_id,
        epoch=1,
        head_address="sim:0",
        controller_url="http://sim",
        labels={},
        expires_at_s=now_s + _FOR_EVER_S,
        ray_version="sim",
        python_version="sim",
    )
    return Instance(
        instance_id=instance_id,
        offer=offer,
        spec=spec,
        token=instance_id,
        state=InstanceState.BOOTING,
        state_at_s=now_s,
        created_at_s=now_s,
        reason=reason,
    )


def home_node(node_id: str, gpus: float, free: float) -> Node:
    """Return an on-prem node with this much free."""
    return _node(node_id, "", node_id, _HOME, gpus, free, None)


def rented_node(node: Rented, labels: dict[str, str], free: float, now_s: float) -> Node:
    """Return the Ray node of a rented instance."""
    name = node.instance.instance_id
    idle_s = None if node.idle_since_s is None else now_s - node.idle_since_s
    return _node(name, name, "", labels, node.gpus, free, idle_s)


def _node(
    node_id: str,
    instance_id: str,
    host: str,
    labels: dict[str, str],
    gpus: float,
    free: float,
    idle_s: float | None,
) -> Node:
    # Built many million times from values that are right by construction: not validated again.
    return _ANY_NODE.model_copy(
        update={
            "node_id": node_id,
            "instance_id": instance_id,
            "host": host,
            "labels": labels,
            "total": {"GPU": float(gpus)},
            "available": {"GPU": float(free)},
            "status": NodeStatus.RUNNING if idle_s is None else NodeStatus.IDLE,
            "idle_s": idle_s,
        }
    )


_ANY_NODE = Node(node_id="", total={}, available={}, status=NodeStatus.RUNNING)
