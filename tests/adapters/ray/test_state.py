"""Reading Ray's messages, built here with Ray's own protobuf classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from hybrid.adapters.ray.gcs import _wire
from hybrid.adapters.ray.state import read_view
from hybrid.core.models import Demand, LabelConstraint, NodeStatus, Spread

GROUP = "750603500751e69de301662091fd01000000"
SITE_ONPREM = LabelConstraint(key="site", values=("onprem",))
SITE_CLOUD = LabelConstraint(key="site", values=("cloud",))

_IN, _NOT_IN = 1, 2


def make_state() -> Any:
    return _wire("autoscaler_pb2").ClusterResourceState()


def add_selectors(request: Any, selectors: Iterable[Mapping[str, tuple[int, list[str]]]]) -> None:
    for rules in selectors:
        selector = request.label_selectors.add()
        for key, (operator, values) in rules.items():
            selector.label_constraints.add(label_key=key, operator=operator, label_values=values)


def add_demand(
    state: Any,
    shape: Mapping[str, float],
    *selectors: Mapping[str, tuple[int, list[str]]],
    count: int = 1,
) -> None:
    raw = state.pending_resource_requests.add(count=count)
    raw.request.resources_bundle.update(shape)
    add_selectors(raw.request, selectors)


def add_node(
    state: Any,
    *,
    number: int = 1,
    total: Mapping[str, float] | None = None,
    available: Mapping[str, float] | None = None,
    labels: Mapping[str, str] | None = None,
    **fields: Any,
) -> None:
    raw = state.node_states.add(node_id=bytes([number]) * 28, **fields)
    raw.total_resources.update(total or {"CPU": 4.0})
    raw.available_resources.update(available or {})
    raw.labels.update(labels or {})


# --- demand -------------------------------------------------------------------------------


def test_equal_demands_of_tasks_and_actors_are_one() -> None:
    state = make_state()
    add_demand(state, {"GPU": 1, "CPU": 2}, {"site": (_IN, ["cloud"])}, count=3)
    add_demand(state, {"CPU": 2, "GPU": 1}, {"site": (_IN, ["cloud"])}, count=4)

    view = read_view(state)

    assert view.demands == (
        Demand(shape={"CPU": 2.0, "GPU": 1.0}, count=7, selectors=((SITE_CLOUD,),)),
    )


def test_fallbacks_keep_their_order_and_the_rules_do_not() -> None:
    state = make_state()
    add_demand(
        state,
        {"GPU": 1},
        {"zone": (_NOT_IN, ["z2", "z1"]), "site": (_IN, ["onprem"])},
        {"site": (_IN, ["cloud"])},
        {},
    )

    (demand,) = read_view(state).demands

    not_z1_z2 = LabelConstraint(key="zone", values=("z1", "z2"), is_negated=True)
    assert demand.selectors == ((SITE_ONPREM, not_z1_z2), (SITE_CLOUD,), ())


def test_one_empty_selector_means_anywhere() -> None:
    state = make_state()
    add_demand(state, {"GPU": 1}, {})

    (demand,) = read_view(state).demands

    assert demand.selectors == ()


def test_a_rule_of_an_unknown_kind_admits_no_node() -> None:
    state = make_state()
    add_demand(state, {"GPU": 1}, {"site": (0, ["cloud"])})

    (demand,) = read_view(state).demands

    assert demand.selectors == ((LabelConstraint(key="site", values=()),),)


@pytest.mark.parametrize(
    "shape",
    [
        {f"GPU_group_{GROUP}": 1.0, f"bundle_group_{GROUP}": 0.001},
        {f"GPU_group_0_{GROUP}": 1.0, f"bundle_group_0_{GROUP}": 0.001},
        {f"bundle_group_12_{GROUP}": 0.001},
    ],
    ids=["any-bundle", "one-bundle", "no-resources"],
)
def test_work_inside_a_placement_group_is_no_demand(shape: Mapping[str, float]) -> None:
    state = make_state()
    add_demand(state, shape)

    assert read_view(state).demands == ()


def test_a_users_resource_may_be_called_group() -> None:
    state = make_state()
    add_demand(state, {"my_group_a": 1})

    (demand,) = read_view(state).demands

    assert demand.shape == {"my_group_a": 1.0}


def test_work_bound_to_one_node_is_no_demand() -> None:
    state = make_state()
    add_demand(state, {"GPU": 1}, {"ray.io/node-id": (_IN, ["ab" * 28])})

    assert read_view(state).demands == ()


def test_work_bound_to_one_node_with_a_second_choice_is_demand() -> None:
    state = make_state()
    add_demand(state, {"GPU": 1}, {"ray.io/node-id": (_IN, ["ab" * 28])}, {})

    (demand,) = read_view(state).demands

    assert len(demand.selectors) == 2


def test_work_without_resources_is_demand_only_when_it_is_choosy() -> None:
    state = make_state()
    add_demand(state, {})
    add_demand(state, {}, {"site": (_IN, ["cloud"])}, count=2)

    view = read_view(state)

    assert view.demands == (Demand(shape={}, count=2, selectors=((SITE_CLOUD,),)),)


def test_equal_states_give_equal_views() -> None:
    one, other = make_state(), make_state()
    for state, sizes in ((one, [1, 2, 3]), (other, [3, 1, 2])):
        for size in sizes:
            add_demand(state, {"GPU": size})
            add_node(state, number=size)

    assert read_view(one) == read_view(other)


# --- gangs --------------------------------------------------------------------------------


def test_a_gang_takes_selectors_from_the_first_alternative() -> None:
    state = make_state()
    raw = state.pending_gang_resource_requests.add(details=f"{GROUP}:STRICT_SPREAD|PENDING")
    raw.requests.add().resources_bundle["GPU"] = 2
    request = raw.bundle_selectors.add().resource_requests.add()
    request.resources_bundle["GPU"] = 2
    add_selectors(request, [{"site": (_IN, ["onprem"])}])

    (gang,) = read_view(state).gangs

    assert gang.gang_id == GROUP
    assert gang.spread is Spread.STRICT_SPREAD
    assert gang.bundles == (Demand(shape={"GPU": 2.0}, count=1, selectors=((SITE_ONPREM,),)),)


def test_a_gang_without_alternatives_has_its_plain_bundles() -> None:
    state = make_state()
    raw = state.pending_gang_resource_requests.add(details=f"{GROUP}:SOMETHING_NEW|PENDING")
    raw.requests.add().resources_bundle["GPU"] = 2

    (gang,) = read_view(state).gangs

    assert gang.spread is Spread.PACK
    assert gang.bundles == (Demand(shape={"GPU": 2.0}, count=1),)


def test_a_gang_whose_bundles_are_all_placed_is_none() -> None:
    state = make_state()
    state.pending_gang_resource_requests.add(details=f"{GROUP}:PACK|RESCHEDULING")

    assert read_view(state).gangs == ()


# --- nodes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw_status", "status", "idle_s", "activity"),
    [
        (0, NodeStatus.RUNNING, None, ("Busy workers on node.",)),
        (1, NodeStatus.RUNNING, None, ("Busy workers on node.",)),
        (2, NodeStatus.DEAD, None, ("Busy workers on node.",)),
        (3, NodeStatus.IDLE, 1.5, ()),
        (4, NodeStatus.DRAINING, None, ("Busy workers on node.",)),
    ],
    ids=["unknown", "running", "dead", "idle-with-stale-words", "draining"],
)
def test_only_an_idle_node_has_an_idle_time(
    raw_status: int, status: NodeStatus, idle_s: float | None, activity: tuple[str, ...]
) -> None:
    state = make_state()
    add_node(
        state, status=raw_status, idle_duration_ms=1500, node_activity=["Busy workers on node."]
    )

    (node,) = read_view(state).nodes

    assert (node.status, node.idle_s, node.activity) == (status, idle_s, activity)


def test_a_used_up_resource_is_zero_and_implicit_ones_are_left_out() -> None:
    state = make_state()
    total = {"CPU": 4, "GPU": 2, "node:10.0.0.1": 1, f"GPU_group_{GROUP}": 2}
    add_node(state, total=total, available={"CPU": 1, "node:10.0.0.1": 1})

    (node,) = read_view(state).nodes

    assert node.total == {"CPU": 4.0, "GPU": 2.0}
    assert node.available == {"CPU": 1.0, "GPU": 0.0}


def test_a_node_carries_our_ids() -> None:
    state = make_state()
    add_node(state, instance_id="i-1", labels={"site": "cloud"})
    add_node(state, number=2, labels={"site": "onprem", "hybrid-host": "gpu-7"})

    rented, own = read_view(state).nodes

    assert (rented.instance_id, rented.host, rented.node_id) == ("i-1", "", "01" * 28)
    assert (own.instance_id, own.host) == ("", "gpu-7")


@pytest.mark.parametrize(
    ("total", "labels", "is_head"),
    [
        ({"node:__internal_head__": 1.0}, {}, True),
        ({"CPU": 1.0}, {"role": "head"}, True),
        ({"CPU": 1.0}, {"role": "worker"}, False),
    ],
    ids=["by-ray's-resource", "by-our-label", "neither"],
)
def test_the_head_is_known(
    total: Mapping[str, float], labels: Mapping[str, str], is_head: bool
) -> None:
    state = make_state()
    add_node(state, total=total, labels=labels)

    (node,) = read_view(state).nodes

    assert node.is_head is is_head
