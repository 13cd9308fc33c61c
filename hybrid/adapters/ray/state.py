"""Reads Ray's `ClusterResourceState` message into our values. Pure.

Equal states give equal values: Ray's order of labels and values changes from call to call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hybrid.core.models import (
    ClusterView,
    Demand,
    Gang,
    LabelConstraint,
    Node,
    NodeStatus,
    Selector,
    Shape,
    Spread,
)

HOST_LABEL = "hybrid-host"
"""Node label that carries the name of an on-prem host."""

_HEAD_RESOURCE = "node:__internal_head__"
_NODE_ID_LABEL = "ray.io/node-id"
# A placement group's own resources on its nodes: GPU_group_<id>, bundle_group_<index>_<id>, ...
_GROUP_RESOURCE = re.compile(r"_group_(\d+_)?[0-9a-f]{36}$")
_IN, _NOT_IN = 1, 2  # LabelSelectorOperator
_STATUSES: Mapping[int, NodeStatus] = {
    1: NodeStatus.RUNNING,
    2: NodeStatus.DEAD,
    3: NodeStatus.IDLE,
    4: NodeStatus.DRAINING,
}
_SPREADS: Mapping[str, Spread] = {spread.value: spread for spread in Spread}


def read_view(state: Any) -> ClusterView:
    """Return nodes and waiting work.

    Left out of the demand, because no new node would help: work inside a placement group
    (it waits for its own group), and work bound to one given node.
    """
    return ClusterView(
        nodes=tuple(sorted(map(_node, state.node_states), key=lambda node: node.node_id)),
        demands=tuple(_demands(state.pending_resource_requests)),
        gangs=tuple(sorted(_gangs(state.pending_gang_resource_requests), key=_gang_id)),
    )


def _node(raw: Any) -> Node:
    labels = dict(sorted(raw.labels.items()))
    total = _shape(raw.total_resources)
    # Ray leaves out what is used up, so what is missing here is zero, not unknown.
    available = dict.fromkeys(total, 0.0) | _shape(raw.available_resources)
    # A status we do not know counts as busy.
    status = _STATUSES.get(raw.status, NodeStatus.RUNNING)
    is_idle = status is NodeStatus.IDLE
    return Node(
        node_id=raw.node_id.hex(),
        instance_id=raw.instance_id,
        host=labels.get(HOST_LABEL, ""),
        labels=labels,
        total=total,
        available=available,
        status=status,
        idle_s=raw.idle_duration_ms / 1000 if is_idle else None,
        # Ray keeps old words on a node that became idle.
        activity=() if is_idle else tuple(sorted(raw.node_activity)),
        is_head=_HEAD_RESOURCE in raw.total_resources or labels.get("role") == "head",
    )


def _shape(resources: Mapping[str, float]) -> dict[str, float]:
    return {
        name: amount
        for name, amount in sorted(resources.items())
        if not name.startswith("node:") and not _is_of_group(name)
    }


def _is_of_group(resource: str) -> bool:
    return "_group_" in resource and _GROUP_RESOURCE.search(resource) is not None


def _demands(raw_requests: Iterable[Any]) -> Iterator[Demand]:
    """Yield demands in a stable order, equal ones (such as tasks and actors) merged."""
    counts: dict[tuple[tuple[tuple[str, float], ...], tuple[Selector, ...]], int] = {}
    selector_by_bytes: dict[bytes, Selector] = {}
    for raw in raw_requests:
        request = raw.request
        if raw.count < 1 or any(map(_is_of_group, request.resources_bundle)):
            continue
        selectors = _selectors(request.label_selectors, selector_by_bytes)
        if selectors and all(map(_is_bound_to_node, selectors)):
            continue
        shape = tuple(sorted(request.resources_bundle.items()))
        if not shape and not selectors:
            continue  # fits on any node there is: it waits for a worker process, not for room
        counts[shape, selectors] = counts.get((shape, selectors), 0) + raw.count
    for shape, selectors in sorted(counts, key=repr):
        yield Demand(shape=dict(shape), count=counts[shape, selectors], selectors=selectors)


def _gangs(raw_gangs: Iterable[Any]) -> Iterator[Gang]:
    for raw in raw_gangs:
        # such as 4cc479b2...01000000:STRICT_SPREAD|PENDING
        gang_id, _, rest = raw.details.partition(":")
        # `requests` lacks the selectors, which live in the first (so far only) alternative.
        alternatives = raw.bundle_selectors
        requests = alternatives[0].resource_requests if alternatives else raw.requests
        bundles = tuple(
            Demand(
                shape=_bundle_shape(request),
                count=1,
                selectors=_selectors(request.label_selectors, {}),
            )
            for request in requests
        )
        if bundles:
            yield Gang(
                gang_id=gang_id,
                bundles=bundles,
                spread=_SPREADS.get(rest.partition("|")[0], Spread.PACK),
            )


def _bundle_shape(request: Any) -> Shape:
    return dict(sorted(request.resources_bundle.items()))


def _gang_id(gang: Gang) -> str:
    return gang.gang_id


def _selectors(
    raw_selectors: Iterable[Any], selector_by_bytes: dict[bytes, Selector]
) -> tuple[Selector, ...]:
    """Return the alternatives in order; `()` when the only one admits every node."""
    selectors: list[Selector] = []
    for raw in raw_selectors:
        key = raw.SerializeToString()
        if key not in selector_by_bytes:  # hundreds of shapes share a few selectors
            constraints = map(_constraint, raw.label_constraints)
            selector_by_bytes[key] = tuple(sorted(constraints, key=repr))
        selector = selector_by_bytes[key]
        if selector not in selectors:
            selectors.append(selector)
    return () if selectors == [()] else tuple(selectors)


def _constraint(raw: Any) -> LabelConstraint:
    # A rule of a kind we do not know admits no node of ours: no values, not negated.
    is_known = raw.operator in (_IN, _NOT_IN)
    return LabelConstraint(
        key=raw.label_key,
        values=tuple(sorted(raw.label_values)) if is_known else (),
        is_negated=raw.operator == _NOT_IN,
    )


def _is_bound_to_node(selector: Selector) -> bool:
    return any(rule.key == _NODE_ID_LABEL and not rule.is_negated for rule in selector)
