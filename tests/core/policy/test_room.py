"""Tests of packing: against one-by-one packing, brute force, and the rules of each spread."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.labels import admits
from hybrid.core.models import Demand, Gang, Node, Selector, Spread
from hybrid.core.policy.pieces import Pieces, total
from hybrid.core.policy.room import Axis, Placed, Room, fits
from tests.core.make import CLOUD, ONPREM, laws, make_demand, make_gang, make_node, rule


def make_room(*nodes: Node, work: tuple[Demand, ...], coming: int = 0) -> Room:
    """Return a room of the nodes' free capacity; the last `coming` of them do not exist yet."""
    room = Room(Axis.of(work))
    for n, node in enumerate(nodes):
        room.add(
            node.available,
            node.labels,
            is_cloud=bool(node.instance_id),
            is_coming=n >= len(nodes) - coming,
        )
    return room


def cloud_node(name: str = "c-1", gpus: float = 4, **more: Any) -> Node:
    return make_node(name, gpus, instance_id=name, **more)


def free_gpus(room: Room) -> list[tuple[str, float, int]]:
    """Return (site, free GPUs, nodes) of what is left; needs the key `site` on the axis."""
    return sorted(
        ("cloud" if place.is_cloud else "home", room.axis.amounts(free).get("GPU", 0.0), count)
        for place, groups in room.nodes.items()
        for free, count in groups.items()
    )


# --- one kind of request --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        pytest.param(make_demand(1, 100), 6, id="as-many-as-fit"),
        pytest.param(make_demand(1, 5), 5, id="no-more-than-asked"),
        pytest.param(make_demand(4, 9), 1, id="whole-nodes"),
        pytest.param(make_demand(5), 0, id="too-large"),
        pytest.param(make_demand(3, 9), 1, id="a-remainder-is-lost"),
        pytest.param(make_demand(0.5, 100), 12, id="half-gpus"),
        pytest.param(make_demand(0.3, 100), 19, id="fractions-that-binary-cannot-write"),
        pytest.param(make_demand(0.1429, 100), 40, id="a-seventh-as-ray-rounds-it"),
        pytest.param(make_demand(1, 100, CPU=3), 3, id="another-resource-binds"),
        pytest.param(make_demand(1, 100, TPU=1), 0, id="a-resource-nobody-has"),
        pytest.param(make_demand(0, 100), 100, id="needs-nothing"),
        pytest.param(make_demand(0, 100, CPU=1), 12, id="needs-no-gpu"),
    ],
)
def test_take_places_as_many_as_fit(demand: Demand, expected: int) -> None:
    room = make_room(make_node("a", 4, CPU=8), make_node("b", 2, CPU=4), work=(demand,))

    placed = room.take(demand, demand.count)

    assert placed.count == expected


def test_memory_is_counted_in_bytes_however_large() -> None:
    demand = make_demand(0, 10**9, memory=2**30)
    room = make_room(make_node("a", 4, memory=2**40), work=(demand,))

    assert room.take(demand, demand.count).count == 1024


def test_a_request_of_one_byte_too_many_does_not_fit() -> None:
    demand = make_demand(0, 1, memory=2**38 + 1)
    room = make_room(make_node("a", 4, memory=2**38), work=(demand,))

    assert room.take(demand, 1).count == 0


def test_a_full_node_still_takes_work_that_needs_nothing_of_what_it_lacks() -> None:
    nothing, gpu = make_demand(0, 3), make_demand(1, 3)
    room = make_room(make_node("a", 4, free=0), work=(nothing, gpu))

    assert (room.take(gpu, 3).count, room.take(nothing, 3).count) == (0, 3)


def test_a_resource_below_zero_counts_as_used_up() -> None:
    """Ray lets a CPU go below 0 for a moment when a blocked task wakes up."""
    node = make_node("a", 4, CPU=2).model_copy(update={"available": {"GPU": 4.0, "CPU": -1.0}})
    gpu, cpu = make_demand(1, 9), make_demand(0, 9, CPU=1)
    room = make_room(node, work=(gpu, cpu))

    assert (room.take(gpu, 9).count, room.take(cpu, 9).count) == (4, 0)


def test_work_that_needs_nothing_needs_a_node_all_the_same() -> None:
    demand = make_demand(0, 3)

    assert Room(Axis.of((demand,))).take(demand, 3).count == 0


def test_huge_counts_cost_nothing() -> None:
    small, wide = make_demand(0.0001, 10**12), make_demand(1, 10**12)
    room = Room(Axis.of((small, wide)))
    room.add({"GPU": 8.0}, {}, is_cloud=False, count=10**9)

    assert room.take(wide, 10**12).count == 8 * 10**9
    assert room.take(small, 10**12).count == 0


# --- where ----------------------------------------------------------------------------------


def test_home_is_filled_before_the_cloud_and_what_is_there_before_what_comes() -> None:
    demand = make_demand(1, 100, CPU=0)
    home, rented, booting = make_node("a", 2), cloud_node("b", 2), cloud_node("c", 2)
    room = make_room(rented, home, booting, work=(demand, make_demand(1, 1, ONPREM)), coming=1)

    counts = []
    for count in (1, 2, 1, 1):
        placed = room.take(demand, count)
        counts.append((placed.now, placed.coming, free_gpus(room)))

    assert [(now, coming) for now, coming, _ in counts] == [(1, 0), (2, 0), (1, 0), (0, 1)]
    assert counts[0][2] == [("cloud", 2, 1), ("cloud", 2, 1), ("home", 1, 1)]


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        pytest.param((CLOUD, ONPREM), ("cloud", 1), id="cloud-preferred"),
        pytest.param((ONPREM, CLOUD), ("home", 1), id="home-preferred"),
        pytest.param((), ("home", 1), id="no-preference"),
        pytest.param(((rule("site", "nowhere"),), CLOUD), ("cloud", 1), id="first-choice-unknown"),
    ],
)
def test_the_preferred_place_is_filled_first(
    selectors: tuple[Selector, ...], expected: tuple[str, float]
) -> None:
    demand = make_demand(1, 1, *selectors)
    room = make_room(make_node("a", 2), cloud_node("b", 2), work=(demand, make_demand(1, 1, CLOUD)))

    room.take(demand, 1)

    assert expected in [(site, free) for site, free, _ in free_gpus(room)]


def test_a_second_choice_is_taken_when_the_first_is_full() -> None:
    demand = make_demand(1, 5, ONPREM, CLOUD)
    room = make_room(make_node("a", 2), cloud_node("b", 2), work=(demand,))

    assert room.take(demand, 5).count == 4


def test_the_fullest_node_that_fits_is_taken_first() -> None:
    demand = make_demand(2, 1)
    room = make_room(
        make_node("a", 8), make_node("b", 8, free=3), make_node("c", 8, free=1), work=(demand,)
    )

    room.take(demand, 1)

    assert [free for _, free, _ in free_gpus(room)] == [8]  # 3 - 2 and 1 hold nothing any more


def test_equal_places_are_one_group_whatever_else_their_labels_say() -> None:
    demand = make_demand(1, 100, ONPREM)
    room = make_room(
        *(make_node(f"n-{i}", 4, labels={"name": f"n-{i}"}) for i in range(50)), work=(demand,)
    )

    assert [len(groups) for groups in room.nodes.values()] == [1]
    assert room.take(demand, 1000).count == 200


def test_a_place_added_later_is_seen() -> None:
    demand = make_demand(1, 100, ONPREM, CLOUD)
    room = make_room(make_node("a", 2), work=(demand,))
    assert room.take(demand, 100).count == 2

    room.add({"GPU": 3.0}, {"site": "cloud"}, is_cloud=True)

    assert room.has_space(demand)
    assert room.take(demand, 100).count == 3
    assert not room.has_space(demand)


def test_a_copy_is_changed_alone() -> None:
    demand = make_demand(1, 3)
    room = make_room(make_node("a", 4), work=(demand,))

    copy = room.copy()
    copy.take(demand, 3)

    assert room.take(demand, 9).count == 4


# --- laws: groups against one-by-one packing ------------------------------------------------

amounts = st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0, 2.0, 3.0, 4.0])
selectors_of = st.sampled_from(
    [(), (ONPREM,), (CLOUD,), (ONPREM, CLOUD), (CLOUD, ONPREM), ((rule("zone", "z"),),)]
)
demands_of = st.builds(
    lambda gpus, cpus, count, selectors: make_demand(gpus, count, *selectors, CPU=cpus),
    amounts,
    amounts,
    st.integers(1, 30),
    selectors_of,
)
nodes_of = st.lists(
    st.builds(
        lambda gpus, cpus, site, zone: (gpus, cpus, site, zone),
        st.sampled_from([0.0, 1.0, 2.0, 4.0, 8.0]),
        st.sampled_from([0.0, 1.0, 4.0, 8.0]),
        st.sampled_from(["onprem", "cloud"]),
        st.sampled_from(["", "z"]),
    ),
    max_size=7,
)
NodeRow = tuple[float, float, str, str]


def room_of(rows: list[NodeRow], work: tuple[Demand, ...]) -> Room:
    room = Room(Axis.of(work))
    for gpus, cpus, site, zone in rows:
        labels = {"site": site, **({"zone": zone} if zone else {})}
        room.add({"GPU": gpus, "CPU": cpus}, labels, is_cloud=site == "cloud")
    return room


class OneByOne:
    """Packs single requests onto single nodes, as plainly as possible, in exact units."""

    def __init__(self, rows: list[NodeRow], keys: tuple[str, ...]) -> None:
        self.nodes = [
            ({"GPU": round(g * 1e4), "CPU": round(c * 1e4)}, {"site": s, "zone": z})
            for g, c, s, z in rows
        ]
        self.keys = keys

    def take(self, demand: Demand) -> bool:
        need = {name: round(amount * 1e4) for name, amount in demand.shape.items()}
        for selector in demand.selectors or ((),):
            able = [
                (free, labels)
                for free, labels in self.nodes
                if admits(selector, {k: v for k, v in labels.items() if v})
                and all(free[name] >= amount for name, amount in need.items())
            ]
            if able:
                free, _ = min(able, key=self.order)
                for name, amount in need.items():
                    free[name] -= amount
                return True
        return False

    def order(self, node: tuple[dict[str, int], dict[str, str]]) -> tuple[object, ...]:
        free, labels = node
        names = tuple(labels[k] for k in self.keys)
        return labels["site"] == "cloud", names, free["GPU"], free["CPU"]


@given(nodes_of, st.lists(demands_of, min_size=1, max_size=5))
@laws
def test_groups_are_packed_as_one_by_one_and_never_over_committed(
    rows: list[NodeRow], demands: list[Demand]
) -> None:
    # A first demand that names both resources, so that both packers look at the same axis.
    work = (make_demand(1, 1, CPU=1), *demands)
    room = room_of(rows, work)
    plain = OneByOne(rows, room.axis.keys)
    for demand in demands:
        placed = room.take(demand, demand.count)

        expected = sum(plain.take(demand) for _ in range(demand.count))
        assert placed.count == expected, demand
    assert all(amount >= 0 for free, _ in plain.nodes for amount in free.values())


@given(nodes_of, demands_of, st.integers(1, 29))
@laws
def test_taking_in_two_steps_is_taking_in_one(
    rows: list[NodeRow], demand: Demand, first: int
) -> None:
    whole, parts = room_of(rows, (demand,)), room_of(rows, (demand,))

    at_once = whole.take(demand, demand.count).count
    first = min(first, demand.count)
    in_two = parts.take(demand, first).count + parts.take(demand, demand.count - first).count

    assert at_once == in_two
    assert whole.nodes == parts.nodes


@given(nodes_of, st.lists(demands_of, min_size=2, max_size=4))
@laws
def test_the_order_of_nodes_does_not_matter(rows: list[NodeRow], demands: list[Demand]) -> None:
    forward, backward = room_of(rows, tuple(demands)), room_of(rows[::-1], tuple(demands))

    for demand in demands:
        assert forward.take(demand, demand.count) == backward.take(demand, demand.count)
    assert forward.nodes == backward.nodes


@given(nodes_of, demands_of)
@laws
def test_has_space_agrees_with_take(rows: list[NodeRow], demand: Demand) -> None:
    room = room_of(rows, (demand,))

    assert room.has_space(demand) == (room.copy().take(demand, 1).count == 1)


# --- gangs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spread", "free", "expected"),
    [
        pytest.param(Spread.PACK, [4, 4], True, id="pack-may-use-two-nodes"),
        pytest.param(Spread.SPREAD, [8], True, id="spread-is-only-a-wish"),
        pytest.param(Spread.STRICT_PACK, [4, 4], False, id="strict-pack-needs-one-node"),
        pytest.param(Spread.STRICT_PACK, [8, 1], True, id="strict-pack-on-one-node"),
        pytest.param(Spread.STRICT_SPREAD, [8, 8], False, id="strict-spread-needs-each-its-own"),
        pytest.param(Spread.STRICT_SPREAD, [2, 2, 2, 2], True, id="strict-spread-on-four"),
        pytest.param(Spread.STRICT_SPREAD, [2, 2, 2, 1], False, id="strict-spread-one-too-small"),
        pytest.param(Spread.PACK, [2, 2, 1, 2], False, id="one-bundle-too-many"),
    ],
)
def test_each_spread_has_its_rule(spread: Spread, free: list[float], expected: bool) -> None:
    gang = make_gang(*[make_demand(2) for _ in range(4)], spread=spread)
    nodes = [make_node(f"n-{n}", gpus) for n, gpus in enumerate(free)]
    room = make_room(*nodes, work=(*gang.bundles, *Pieces.of(gang).units))
    before = {place: dict(groups) for place, groups in room.nodes.items()}

    placed = room.take_gang(Pieces.of(gang))

    assert (placed is not None) == expected
    if placed is None:
        assert room.nodes == before, "a gang that does not fit leaves no trace"


def test_a_gang_says_how_much_of_it_waits_for_nodes_that_come() -> None:
    gang = make_gang(make_demand(2), make_demand(2), make_demand(2))
    room = make_room(make_node("a", 2), make_node("b", 4), work=gang.bundles, coming=1)

    assert room.take_gang(Pieces.of(gang)) == Placed(now=1, coming=2)


def test_a_strict_pack_gang_needs_a_node_that_every_bundle_admits() -> None:
    gang = make_gang(
        make_demand(1, 1, ONPREM),
        make_demand(1, 1, (rule("zone", "z"),)),
        make_demand(1, 1, ONPREM),
        make_demand(1),
        spread=Spread.STRICT_PACK,
    )
    room = make_room(make_node("a", 8), work=(*gang.bundles, *Pieces.of(gang).units))
    assert room.take_gang(Pieces.of(gang)) is None

    room.add({"GPU": 8.0}, {"site": "onprem", "zone": "z"}, is_cloud=False)

    assert room.take_gang(Pieces.of(gang)) == Placed(now=1)


def test_strict_spread_bundles_leave_the_rest_of_their_nodes_to_others() -> None:
    gang = make_gang(make_demand(1), make_demand(1), spread=Spread.STRICT_SPREAD)
    single = make_demand(1, 9)
    room = make_room(make_node("a", 4), make_node("b", 4), work=(*gang.bundles, single))

    assert room.take_gang(Pieces.of(gang)) == Placed(now=2)
    assert room.take(single, 9).count == 6


def test_equal_bundles_are_one_unit_however_many_and_however_listed() -> None:
    one, other = make_demand(2, 1, ONPREM), make_demand(2, 1, CLOUD)
    gang = make_gang(one, other, one, one.model_copy(update={"count": 3}))

    found = Pieces.of(gang).units

    assert {(u.count, u.selectors) for u in found} == {(5, (ONPREM,)), (1, (CLOUD,))}
    assert Pieces.of(make_gang(*gang.bundles[::-1])).units == found


def test_a_gang_of_a_million_bundles_costs_no_more_than_one_of_two() -> None:
    gang = make_gang(make_demand(1, 10**6), spread=Spread.STRICT_SPREAD)
    room = Room(Axis.of(gang.bundles))
    room.add({"GPU": 8.0}, {}, is_cloud=False, count=10**6)

    assert room.take_gang(Pieces.of(gang)) == Placed(now=10**6)
    assert room.take_gang(Pieces.of(gang)) == Placed(now=10**6)


def fits_by_force(gang: Gang, free: tuple[int, ...]) -> bool:
    """Return whether any assignment of bundles to nodes of one resource works."""
    sizes = [round(b.shape.get("GPU", 0)) for b in gang.bundles for _ in range(b.count)]
    if gang.spread is Spread.STRICT_PACK:
        return any(sum(sizes) <= f for f in free)
    if gang.spread is Spread.STRICT_SPREAD:
        return any(
            all(s <= f for s, f in zip(sizes, chosen, strict=True))
            for chosen in permutations(free, len(sizes))
        )
    return any(
        all(
            sum(s for s, at in zip(sizes, where, strict=True) if at == n) <= f
            for n, f in enumerate(free)
        )
        for where in product(range(len(free)), repeat=len(sizes))
    )


small_gangs = st.builds(
    lambda sizes, spread: make_gang(*(make_demand(s) for s in sizes), spread=spread),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.sampled_from(Spread),
)
small_nodes = st.lists(st.integers(0, 6), min_size=1, max_size=4).map(tuple)


def gang_room(gang: Gang, free: tuple[int, ...]) -> Room:
    room = Room(Axis.of((*gang.bundles, *Pieces.of(gang).units)))
    for gpus in free:
        room.add({"GPU": float(gpus)}, {}, is_cloud=False)
    return room


@given(small_gangs, small_nodes)
@laws
def test_a_gang_that_is_placed_can_be_placed(gang: Gang, free: tuple[int, ...]) -> None:
    placed = gang_room(gang, free).take_gang(Pieces.of(gang))

    if placed is not None:
        assert fits_by_force(gang, free)
        assert placed.count == sum(u.count for u in Pieces.of(gang).units)


@given(small_gangs, small_nodes)
@laws
def test_strict_gangs_and_gangs_of_equal_bundles_are_placed_whenever_they_can(
    gang: Gang, free: tuple[int, ...]
) -> None:
    """Mixed sizes in PACK are bin packing: there the greedy way, as Ray's own, may fail."""
    is_exact = (
        gang.spread in (Spread.STRICT_PACK, Spread.STRICT_SPREAD) or len(Pieces.of(gang).units) == 1
    )
    if is_exact:
        placed = gang_room(gang, free).take_gang(Pieces.of(gang))

        assert (placed is not None) == fits_by_force(gang, free)


# --- small pieces ---------------------------------------------------------------------------


def test_the_axis_puts_gpus_first_and_knows_the_smallest_request() -> None:
    axis = Axis.of((make_demand(2, 1, ONPREM, CPU=4), make_demand(1, 1, memory=8)))

    assert axis.resources == ("GPU", "CPU", "memory")
    assert axis.keys == ("site",)
    assert axis.amounts(axis.least) == {"GPU": 1.0, "CPU": 0.0, "memory": 0.0}


def test_an_axis_of_no_work_is_empty() -> None:
    assert Axis.of(()) == Axis((), (), ())


@pytest.mark.parametrize(
    ("need", "free", "expected"),
    [
        ({}, {}, True),
        ({"GPU": 1.0}, {}, False),
        ({"GPU": 0.1 + 0.2}, {"GPU": 0.3}, True),
        ({"GPU": 0.3001}, {"GPU": 0.3}, False),
        ({"GPU": 1.0, "CPU": 2.0}, {"GPU": 1.0, "CPU": 1.0}, False),
    ],
)
def test_fits_forgives_rounding_and_nothing_else(
    need: dict[str, float], free: dict[str, float], expected: bool
) -> None:
    assert fits(need, free) is expected


def test_total_sums_shapes_over_counts() -> None:
    assert total((make_demand(2, 3, CPU=1), make_demand(0, 2, CPU=4))) == {"GPU": 6, "CPU": 11}


# --- what is coming -------------------------------------------------------------------------


def coming_room(*gpus: float, work: tuple[Demand, ...]) -> Room:
    nodes = [cloud_node(f"c-{n}", size) for n, size in enumerate(gpus)]
    return make_room(*nodes, work=work, coming=len(nodes))


def test_coming_nodes_are_filled_one_by_one_in_the_order_they_were_launched() -> None:
    """Best fit would put a 3 on the 4 and leave no room for the last 2."""
    three, two = make_demand(3, 2), make_demand(2, 3)
    room = coming_room(8, 4, work=(three, two))

    assert room.fill_coming([(three, 2), (two, 3)]) == [2, 3]
    assert [room.take(d, d.count, is_coming=True).count for d in (three, two)] == [2, 2]


def test_filling_changes_nothing_and_looks_only_at_what_is_coming() -> None:
    one = make_demand(1, 99)
    room = make_room(make_node("h", 4), cloud_node("c", 4), work=(one,), coming=1)

    assert room.fill_coming([(one, 99)]) == [4]
    assert room.fill_coming([(one, 99)]) == [4]
    assert room.take(one, 99, is_coming=False) == Placed(now=4)
    assert room.take(one, 99, is_coming=True) == Placed(coming=4)


def test_many_equal_coming_nodes_are_filled_alike() -> None:
    three, one = make_demand(3, 9), make_demand(1, 99)
    room = coming_room(*[8.0] * 5, work=(three, one))

    assert room.fill_coming([(three, 9), (one, 99)]) == [9, 13]
    assert room.fill_coming([(three, 7), (one, 99)]) == [7, 19]


def test_filling_heeds_labels_and_work_that_needs_nothing() -> None:
    home, away, none = make_demand(1, 9, ONPREM), make_demand(1, 9, CLOUD), make_demand(0, 9)
    room = coming_room(2, 2, work=(home, away, none))

    assert room.fill_coming([(home, 9), (away, 3), (none, 9)]) == [0, 3, 9]


def test_a_gang_on_coming_nodes_leaves_the_rest_of_them_to_others() -> None:
    gang, one = make_gang(make_demand(3), make_demand(3)), make_demand(1, 99)
    room = coming_room(4, 8, 8, work=(*gang.bundles, one))

    assert room.take_gang(Pieces.of(gang)) == Placed(coming=2)
    assert room.fill_coming([(one, 99)]) == [14]
    assert room.copy().fill_coming([(one, 99)]) == [14]


def test_gangs_that_ask_for_the_same_have_the_same_key() -> None:
    one, two = make_demand(1, 1, ONPREM), make_demand(2)
    gang = make_gang(one, two, one)
    same = make_gang(two, one.model_copy(update={"count": 2}), gang_id="g-2", waiting_s=9.0)
    others = [
        make_gang(one, two),
        make_gang(make_demand(1), two, make_demand(1)),
        make_gang(one, two, one, spread=Spread.STRICT_SPREAD),
        make_gang(one, two, one, spread=Spread.STRICT_PACK),
    ]

    assert Pieces.of(same).key == Pieces.of(gang).key
    assert Pieces.of(gang).key not in [Pieces.of(other).key for other in others]
