"""Tests of ages judged from counts: bounds against a queue that knows the truth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.models import ClusterView, Demand, Gang
from hybrid.core.waiting import Backlog, demand_key, look
from tests.core.make import CLOUD, ONPREM, laws, make_demand, make_gang, rule


def make_view(*work: Demand | Gang) -> ClusterView:
    return ClusterView(
        demands=tuple(w for w in work if isinstance(w, Demand)),
        gangs=tuple(w for w in work if isinstance(w, Gang)),
    )


def ages(*looks: tuple[float, int]) -> list[float | None]:
    """Return the age after each (instant, count) look at one kind of request."""
    backlog, seen = Backlog(), []
    for now_s, count in looks:
        view = make_view(make_demand(1, count)) if count else make_view()
        backlog, aged = look(backlog, view, now_s=now_s)
        seen.append(aged.demands[0].waiting_s if count else None)
    return seen


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([(5, 3)], [0], id="first-seen-now"),
        pytest.param([(5, 3), (9, 3)], [0, 4], id="the-same-still-wait"),
        pytest.param([(5, 3), (9, 5), (10, 5)], [0, 4, 5], id="arrivals-do-not-make-it-younger"),
        pytest.param([(5, 3), (9, 5), (10, 2)], [0, 4, 1], id="the-oldest-left-first"),
        pytest.param([(5, 3), (9, 5), (10, 3)], [0, 4, 5], id="some-of-the-oldest-left"),
        pytest.param([(0, 1), (1, 2), (2, 3), (3, 1)], [0, 1, 2, 1], id="two-cohorts-left"),
        pytest.param([(5, 3), (9, 0), (12, 3)], [0, None, 0], id="all-left-and-new-ones-came"),
    ],
)
def test_ages_follow_from_counts(
    looks: list[tuple[float, int]], expected: list[float | None]
) -> None:
    assert ages(*looks) == expected


def test_a_steady_stream_looks_older_than_it_is() -> None:
    """The price of counts: ten short tasks that change at each look seem to be the same ten."""
    assert ages(*((float(n), 10) for n in range(0, 600, 5)))[-1] == 595.0


def test_each_kind_of_request_ages_alone() -> None:
    old, new = make_demand(1, 2), make_demand(2, 2, ONPREM)
    backlog, _ = look(Backlog(), make_view(old), now_s=0)

    _, aged = look(backlog, make_view(new, old), now_s=7)

    assert [d.waiting_s for d in aged.demands] == [0, 7]


def test_two_entries_of_one_kind_share_their_age() -> None:
    backlog, _ = look(Backlog(), make_view(make_demand(1, 5)), now_s=0)

    backlog, split = look(backlog, make_view(make_demand(1, 2), make_demand(1, 3)), now_s=7)
    _, merged = look(backlog, make_view(make_demand(1, 5)), now_s=9)

    assert [d.waiting_s for d in split.demands] == [7, 7]
    assert [d.waiting_s for d in merged.demands] == [9]


def test_a_gang_ages_from_when_it_was_first_seen() -> None:
    gang = make_gang(make_demand(4), waiting_s=None)
    backlog, first = look(Backlog(), make_view(gang), now_s=10)

    backlog, second = look(
        backlog, make_view(gang, make_gang(make_demand(4), gang_id="g-2")), now_s=25
    )
    backlog, _ = look(backlog, make_view(), now_s=30)
    _, again = look(backlog, make_view(gang), now_s=40)

    assert [g.waiting_s for g in first.gangs] == [0]
    assert [g.waiting_s for g in second.gangs] == [15, 0]
    assert [g.waiting_s for g in again.gangs] == [0]


def test_a_look_changes_nothing_but_ages() -> None:
    view = make_view(make_demand(1, 5, CLOUD, waiting_s=None), make_gang(make_demand(2)))

    _, aged = look(Backlog(), view, now_s=3)

    bare = aged.model_copy(
        update={
            "demands": tuple(d.model_copy(update={"waiting_s": None}) for d in aged.demands),
            "gangs": tuple(g.model_copy(update={"waiting_s": 0.0}) for g in aged.gangs),
        }
    )
    assert bare == view


# --- a clock that jumps (reliability 27) ----------------------------------------------------


def test_a_clock_that_goes_back_counts_as_no_time_passed() -> None:
    assert ages((1000, 3), (1100, 3), (500, 3), (510, 3)) == [0, 100, 100, 110]


def test_a_clock_that_goes_back_keeps_the_order_of_arrivals() -> None:
    assert ages((1000, 1), (1010, 2), (500, 2), (503, 1)) == [0, 10, 10, 3]


def test_work_that_arrives_while_the_clock_goes_back_is_new() -> None:
    backlog, _ = look(Backlog(), make_view(make_demand(1)), now_s=1000)

    backlog, aged = look(backlog, make_view(make_demand(1), make_demand(2)), now_s=400)
    _, later = look(backlog, make_view(make_demand(1), make_demand(2)), now_s=405)

    assert [d.waiting_s for d in aged.demands] == [0, 0]
    assert [d.waiting_s for d in later.demands] == [5, 5]


# --- keys -----------------------------------------------------------------------------------


def test_the_key_ignores_the_order_of_resources_and_heeds_everything_else() -> None:
    base = demand_key({"GPU": 1.0, "CPU": 2.0}, (ONPREM, CLOUD))
    others = [
        demand_key({"GPU": 1.0}, (ONPREM, CLOUD)),
        demand_key({"GPU": 1.0, "CPU": 3.0}, (ONPREM, CLOUD)),
        demand_key({"GPU": 1.0, "CPU": 2.0}, (CLOUD, ONPREM)),
        demand_key({"GPU": 1.0, "CPU": 2.0}, ((rule("site", "onprem", is_negated=True),), CLOUD)),
        demand_key({"GPU": 1.0, "CPU": 2.0}, ()),
    ]

    assert demand_key({"CPU": 2.0, "GPU": 1.0}, (ONPREM, CLOUD)) == base
    assert len({base, *others}) == len(others) + 1


# --- laws: against a queue that knows when each request came --------------------------------

Beat = tuple[float, int, int, int]
"""Seconds since the last look, arrivals, departures, arrivals after those."""

beats = st.lists(
    st.tuples(st.floats(0.1, 50), st.integers(0, 4), st.integers(0, 6), st.integers(0, 4)),
    min_size=1,
    max_size=25,
)


def replay(steps: list[Beat]) -> list[tuple[float | None, float | None, float | None, float]]:
    """Return, for each look: reported age, true age, age since first seen, time since last look.

    Requests come just after the last look, which is when a look is most wrong about them.
    """
    rows: list[tuple[float | None, float | None, float | None, float]] = []
    backlog, now_s = Backlog(), 0.0
    queue: list[tuple[float, float]] = []  # (came, first seen)
    for dt_s, before, leaving, after in steps:
        came, now_s = now_s, now_s + dt_s
        queue += [(came, now_s)] * before
        queue = queue[leaving:]  # first in, first out
        queue += [(came, now_s)] * after
        view = make_view(make_demand(1, len(queue))) if queue else make_view()
        backlog, aged = look(backlog, view, now_s=now_s)
        reported = aged.demands[0].waiting_s if queue else None
        true_s = now_s - queue[0][0] if queue else None
        seen_s = now_s - queue[0][1] if queue else None
        rows.append((reported, true_s, seen_s, dt_s))
    return rows


@given(beats)
@laws
def test_an_age_is_never_below_the_true_one_by_more_than_one_look(steps: list[Beat]) -> None:
    looks_s = [dt_s for dt_s, *_ in steps]
    for reported, true_s, _, _ in replay(steps):
        assert (reported is None) == (true_s is None)
        if reported is not None and true_s is not None:
            assert reported >= true_s - max(looks_s) - 1e-6


@given(beats)
@laws
def test_an_age_is_exact_when_nothing_leaves_while_others_come(steps: list[Beat]) -> None:
    apart = [
        (dt_s, 0 if n % 2 else before, leaving if n % 2 else 0, 0)
        for n, (dt_s, before, leaving, _) in enumerate(steps)
    ]
    for reported, _, seen_s, _ in replay(apart):
        assert reported == pytest.approx(seen_s)


@given(beats)
@laws
def test_an_age_never_grows_faster_than_time(steps: list[Beat]) -> None:
    before_s = 0.0
    for reported, _, _, dt_s in replay(steps):
        if reported is not None:
            assert reported <= before_s + dt_s + 1e-6
        before_s = reported or 0.0


@given(beats, st.floats(-5_000, -1), st.integers(0, 20))
@laws
def test_a_jump_back_at_any_moment_only_loses_the_time_of_one_look(
    steps: list[Beat], jump_s: float, at: int
) -> None:
    straight, jumped = Backlog(), Backlog()
    now_s, shift_s, lost_s = 10_000.0, 0.0, 0.0
    for n, (dt_s, count, _, _) in enumerate(steps):
        now_s += dt_s
        if n == at:
            shift_s = jump_s - dt_s
            lost_s = dt_s
        view = make_view(make_demand(1, count + 1))
        straight, right = look(straight, view, now_s=now_s)
        jumped, other = look(jumped, view, now_s=now_s + shift_s)

        right_s, other_s = right.demands[0].waiting_s, other.demands[0].waiting_s
        assert right_s is not None
        assert other_s is not None
        assert right_s - lost_s - 1e-6 <= other_s <= right_s + 1e-6
