"""Which rented nodes count as idle, from Ray's own message to the plan, and what is shown.

Item 37 of the reliability contract: setup, work without CPUs and held objects count as busy, and
so does everything unknown.
"""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.adapters.ray.state import read_view
from hybrid.core.models import InstanceState, Node
from hybrid.core.policy.decide import decide
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Drain, Snapshot
from tests.adapters.ray.test_state import add_node, make_state
from tests.core.make import make_instance

TOTAL = {"GPU": 4.0, "CPU": 8.0}
RUNNING, DEAD, IDLE, DRAINING, UNKNOWN = 1, 2, 3, 4, 9
LONG_MS = 3_600_000

STATES: dict[str, tuple[dict[str, Any], bool, tuple[str, ...]]] = {
    "idle for an hour": ({"status": IDLE, "idle_duration_ms": LONG_MS}, True, ()),
    "idle, with old words": (
        {"status": IDLE, "idle_duration_ms": LONG_MS, "node_activity": ["was busy"]},
        True,
        (),
    ),
    "idle for a minute": ({"status": IDLE, "idle_duration_ms": 60_000}, False, ()),
    "idle since no known time": ({"status": IDLE, "idle_duration_ms": 0}, False, ()),
    "work that takes no CPU and no GPU": (
        {"status": RUNNING, "node_activity": ["Busy workers on node."]},
        False,
        ("Busy workers on node.",),
    ),
    "objects are held": (
        {"status": RUNNING, "node_activity": ["Resource: object_store_memory currently in use."]},
        False,
        ("Resource: object_store_memory currently in use.",),
    ),
    "setup, all resources free": ({"status": RUNNING}, False, ()),
    "busy, with a leftover idle time": (
        {"status": RUNNING, "idle_duration_ms": LONG_MS},
        False,
        (),
    ),
    "a status we do not know": ({"status": UNKNOWN, "idle_duration_ms": LONG_MS}, False, ()),
    "no status at all": ({"idle_duration_ms": LONG_MS}, False, ()),
    "drains already": ({"status": DRAINING, "idle_duration_ms": LONG_MS}, False, ()),
    "dead": ({"status": DEAD, "idle_duration_ms": LONG_MS}, False, ()),
}


def node_of(fields: dict[str, Any]) -> Node:
    state = make_state()
    add_node(state, total=TOTAL, available=TOTAL, instance_id="i-1", **fields)
    (node,) = read_view(state).nodes
    return node


@pytest.mark.parametrize(("fields", "is_idle", "why"), STATES.values(), ids=STATES)
def test_only_a_node_that_ray_calls_idle_for_long_is_asked_to_leave(
    fields: dict[str, Any], is_idle: bool, why: tuple[str, ...]
) -> None:
    node = node_of(fields)
    instance = make_instance("i-1", InstanceState.RUNNING, now_s=1e6, age_s=1e5)
    snapshot = Snapshot(now_s=1e6, nodes=(node,), instances=(instance,))

    plan = decide(snapshot, PolicyParams())

    assert [isinstance(action, Drain) for action in plan.actions] == ([True] if is_idle else [])
    assert node.activity == why
    assert (node.idle_s is None) or fields["status"] == IDLE
