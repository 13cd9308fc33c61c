"""Tests of the moment at which waiting alone changes the plan."""

from __future__ import annotations

import pytest

from hybrid.core.policy.due import due_s
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Plan
from tests.core.make import NOW_S, make_demand, make_gang, make_snapshot

PARAMS = PolicyParams(max_wait_s=300.0, stabilisation_s=30.0)


@pytest.mark.parametrize(
    ("ages_s", "expected"),
    [
        ([], None),
        ([None], None),
        ([0.0], 300.0),
        ([299.5, 10.0, None], 0.5),
        ([300.0], 0.0),
        ([301.0], None),
        ([301.0, 100.0], 200.0),
    ],
)
def test_due_when_the_next_work_will_have_waited_for_too_long(
    ages_s: list[float | None], expected: float | None
) -> None:
    demands = [make_demand(waiting_s=age_s) for age_s in ages_s]

    due = due_s(make_snapshot(demands=demands), Plan(), PARAMS)

    assert due == (None if expected is None else pytest.approx(expected + 0.01))


def test_gangs_count_as_work() -> None:
    gang = make_gang(make_demand(), waiting_s=290.0)

    assert due_s(make_snapshot(gangs=[gang]), Plan(), PARAMS) == pytest.approx(10.01)


@pytest.mark.parametrize(("broken_s", "expected"), [(0.0, 30.01), (29.9, 0.11), (30.0, None)])
def test_due_when_the_limit_will_have_been_broken_for_long_enough(
    broken_s: float, expected: float | None
) -> None:
    snapshot = make_snapshot(demands=[make_demand(waiting_s=100.0)])

    due = due_s(snapshot, Plan(breach_since_s=NOW_S - broken_s), PARAMS)

    assert due == (None if expected is None else pytest.approx(expected))
