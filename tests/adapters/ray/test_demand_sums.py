"""Each waiting task is counted once, in one snapshot, and only if a node could help it.

Item 14 of the reliability contract, for random states of Ray's own message.
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hybrid.adapters.ray.state import read_view
from hybrid.core.models import ClusterView
from hybrid.core.waiting import Backlog, look
from tests.adapters.ray.test_state import GROUP, add_demand, make_state

IN = 1
PLAIN = [{"GPU": 1.0}, {"CPU": 2.0}, {"GPU": 2.0, "CPU": 1.0}, {"accelerator_type:L4": 0.001}]
PLACES: list[tuple[dict[str, tuple[int, list[str]]], ...]] = [
    (),
    ({},),
    ({"site": (IN, ["cloud"])},),
    ({"site": (IN, ["onprem"])}, {}),
]
BOUND = ({"ray.io/node-id": (IN, ["ab" * 28])},)
IN_GROUP = [{f"GPU_group_{GROUP}": 1.0}, {f"bundle_group_0_{GROUP}": 0.001}]

requests = st.lists(
    st.tuples(
        st.sampled_from(["admitted", "bound", "in a group", "worker only"]),
        st.integers(0, len(PLAIN) - 1),
        st.integers(0, len(PLACES) - 1),
        st.integers(0, 1000),
    ),
    max_size=30,
)


def fill(state: Any, wanted: list[tuple[str, int, int, int]]) -> int:
    """Add requests to a state; return how many of them a new node could help."""
    admitted = 0
    for kind, shape, place, count in wanted:
        if kind == "admitted":
            add_demand(state, PLAIN[shape], *PLACES[place], count=count)
            admitted += count
        elif kind == "bound":
            add_demand(state, PLAIN[shape], *BOUND, count=count)
        elif kind == "in a group":
            add_demand(state, IN_GROUP[shape % 2], count=count)
        else:
            add_demand(state, {}, count=count)
    return admitted


def sum_of(view: ClusterView) -> int:
    return sum(demand.count for demand in view.demands)


@given(requests)
def test_the_sum_of_the_demand_is_what_waits_and_may_be_helped(
    wanted: list[tuple[str, int, int, int]],
) -> None:
    state = make_state()
    admitted = fill(state, wanted)

    view = read_view(state)

    assert sum_of(view) == admitted
    kinds = [(tuple(sorted(d.shape.items())), d.selectors) for d in view.demands]
    assert len(kinds) == len(set(kinds)), "equal work in two lines is counted twice elsewhere"
    assert all(demand.count > 0 for demand in view.demands)


@given(requests, st.integers(0, 100))
def test_the_order_of_rays_lists_changes_nothing(
    wanted: list[tuple[str, int, int, int]], seed: int
) -> None:
    shuffled = list(wanted)
    random.Random(seed).shuffle(shuffled)
    one, two = make_state(), make_state()
    fill(one, wanted)
    fill(two, shuffled)

    assert read_view(one) == read_view(two)


@given(st.lists(requests, min_size=1, max_size=5))
def test_ages_are_given_without_losing_or_doubling_anything(
    looks: list[list[tuple[str, int, int, int]]],
) -> None:
    backlog = Backlog()
    for number, wanted in enumerate(looks):
        state = make_state()
        admitted = fill(state, wanted)

        backlog, view = look(backlog, read_view(state), now_s=10.0 * number)

        assert sum_of(view) == admitted
