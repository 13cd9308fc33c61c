"""Tests of the transition table: every (state, fact) pair, the ways out, the deadlines."""

from __future__ import annotations

from itertools import product

import pytest

from hybrid.core.errors import IllegalTransitionError
from hybrid.core.lifecycle import ENDED, TRANSITIONS, Deadlines, Fact, advance, overdue_fact
from hybrid.core.models import InstanceState, Reason
from tests.core.make import NOW_S, make_instance

S, F = InstanceState, Fact
DEADLINES = Deadlines(launch_s=1, join_s=2, drain_s=3, idle_drain_s=4, terminate_s=5)
LIVE = tuple(s for s in S if s not in ENDED)

# Written out a second time on purpose: a slip in the table must not pass as its own proof.
EXPECTED = {
    S.REQUESTED: {
        F.LAUNCH_ACCEPTED: S.BOOTING,
        F.FOUND_IN_CLOUD: S.BOOTING,
        F.LAUNCH_REFUSED: S.FAILED,
        F.LAUNCH_OVERDUE: S.LOST,
        F.GONE: S.TERMINATED,
    },
    S.BOOTING: {
        F.NODE_JOINED: S.RUNNING,
        F.JOIN_OVERDUE: S.TERMINATING,
        F.NODE_FAILED: S.TERMINATING,
        F.TERMINATE_ASKED: S.TERMINATING,
        F.MISSING: S.LOST,
        F.GONE: S.TERMINATED,
    },
    S.RUNNING: {
        F.DRAIN_STARTED: S.DRAINING,
        F.NODE_FAILED: S.TERMINATING,
        F.TERMINATE_ASKED: S.TERMINATING,
        F.MISSING: S.LOST,
        F.GONE: S.TERMINATED,
    },
    S.DRAINING: {
        F.DRAIN_REFUSED: S.RUNNING,
        F.DRAINED: S.TERMINATING,
        F.DRAIN_OVERDUE: S.TERMINATING,
        F.NODE_FAILED: S.TERMINATING,
        F.TERMINATE_ASKED: S.TERMINATING,
        F.MISSING: S.LOST,
        F.GONE: S.TERMINATED,
    },
    S.TERMINATING: {F.GONE: S.TERMINATED, F.MISSING: S.LOST},
    S.LOST: {
        F.FOUND_IN_CLOUD: S.TERMINATING,
        F.TERMINATE_ASKED: S.TERMINATING,
        F.GONE: S.TERMINATED,
    },
    S.TERMINATED: {},
    S.FAILED: {},
}
PAIRS = [pytest.param(s, f, id=f"{s}-{f}") for s, f in product(S, F)]


@pytest.mark.parametrize(("state", "fact"), PAIRS)
def test_each_pair_of_state_and_fact_goes_where_it_should(state: InstanceState, fact: Fact) -> None:
    instance = make_instance(state=state)
    target = EXPECTED[state].get(fact)

    if target is None:
        with pytest.raises(IllegalTransitionError, match=f"i-1: {fact} .* in state {state}"):
            advance(instance, fact, now_s=NOW_S, deadlines=DEADLINES)
        return
    after = advance(instance, fact, now_s=NOW_S, deadlines=DEADLINES)

    assert after.state is target
    assert after.state_at_s == NOW_S
    assert after.ended_at_s == (NOW_S if target in ENDED else None)


def test_there_is_no_way_out_of_an_ended_state() -> None:
    assert not [pair for pair in TRANSITIONS if pair[0] in ENDED]
    assert {s for s in S if make_instance(state=s).is_ended} == ENDED


@pytest.mark.parametrize("state", LIVE)
def test_the_word_of_the_cloud_ends_every_live_state(state: InstanceState) -> None:
    assert TRANSITIONS[state, F.GONE] is S.TERMINATED


@pytest.mark.parametrize("state", LIVE)
def test_every_live_state_can_be_reached_from_the_first(state: InstanceState) -> None:
    reached = {S.REQUESTED}
    for _ in S:
        reached |= {target for (source, _), target in TRANSITIONS.items() if source in reached}

    assert state in reached


@pytest.mark.parametrize(
    ("source", "fact", "lasts_s"),
    [
        (S.REQUESTED, F.LAUNCH_ACCEPTED, DEADLINES.join_s),
        (S.RUNNING, F.DRAIN_STARTED, DEADLINES.drain_s),
        (S.RUNNING, F.TERMINATE_ASKED, DEADLINES.terminate_s),
        (S.BOOTING, F.NODE_JOINED, None),
        (S.RUNNING, F.MISSING, None),
        (S.RUNNING, F.GONE, None),
    ],
)
def test_a_transient_state_gets_its_deadline_and_others_lose_it(
    source: InstanceState, fact: Fact, lasts_s: float | None
) -> None:
    before = make_instance(state=source, deadline_at_s=1.0)

    after = advance(before, fact, now_s=NOW_S, deadlines=DEADLINES)

    assert after.deadline_at_s == (None if lasts_s is None else NOW_S + lasts_s)


def test_every_transient_state_has_a_deadline_whatever_led_there() -> None:
    transient = {S.BOOTING, S.DRAINING, S.TERMINATING}
    for (source, fact), target in TRANSITIONS.items():
        after = advance(make_instance(state=source), fact, now_s=NOW_S, deadlines=DEADLINES)

        assert (after.deadline_at_s is not None) == (target in transient), (source, fact)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (S.REQUESTED, F.LAUNCH_OVERDUE),
        (S.BOOTING, F.JOIN_OVERDUE),
        (S.DRAINING, F.DRAIN_OVERDUE),
        (S.TERMINATING, None),
        (S.LOST, None),
        (S.RUNNING, None),
        (S.TERMINATED, None),
        (S.FAILED, None),
    ],
)
@pytest.mark.parametrize(
    ("late_s", "is_over"),
    [
        pytest.param(-0.001, False, id="just-before"),
        pytest.param(0.0, True, id="at-the-deadline"),
        pytest.param(0.001, True, id="just-after"),
    ],
)
def test_a_passed_deadline_means_a_fact_that_the_table_knows(
    state: InstanceState, expected: Fact | None, late_s: float, is_over: bool
) -> None:
    instance = make_instance(state=state, deadline_at_s=NOW_S)

    fact = overdue_fact(instance, now_s=NOW_S + late_s)

    assert fact is (expected if is_over else None)
    assert fact is None or (state, fact) in TRANSITIONS


@pytest.mark.parametrize("state", list(S))
def test_no_deadline_is_never_overdue(state: InstanceState) -> None:
    assert overdue_fact(make_instance(state=state, deadline_at_s=None), now_s=1e12) is None


def test_a_problem_is_kept_and_no_problem_leaves_the_last_one() -> None:
    lost = advance(
        make_instance(), F.MISSING, now_s=NOW_S, deadlines=DEADLINES, problem="not listed"
    )

    again = advance(lost, F.FOUND_IN_CLOUD, now_s=NOW_S, deadlines=DEADLINES)

    assert (lost.problem, again.problem) == ("not listed", "not listed")


def test_the_join_is_remembered_for_the_boot_time() -> None:
    booting = make_instance(state=S.BOOTING)

    running = advance(booting, F.NODE_JOINED, now_s=NOW_S, deadlines=DEADLINES)
    draining = advance(running, F.DRAIN_STARTED, now_s=NOW_S + 9, deadlines=DEADLINES)

    assert (running.joined_at_s, draining.joined_at_s) == (NOW_S, NOW_S)


def test_a_refused_drain_leaves_no_trace_of_the_drain() -> None:
    reason = Reason(code="idle", message="idle")
    draining = make_instance(state=S.DRAINING, drain_kind="idle", drain_reason=reason)

    running = advance(draining, F.DRAIN_REFUSED, now_s=NOW_S, deadlines=DEADLINES)

    assert (running.drain_kind, running.drain_reason, running.deadline_at_s) == ("", None, None)


def test_misses_are_kept_as_evidence_when_lost_and_forgotten_otherwise() -> None:
    missed = make_instance(missing_count=3, missing_since_s=5.0)

    lost = advance(missed, F.MISSING, now_s=NOW_S, deadlines=DEADLINES)
    found = advance(lost, F.FOUND_IN_CLOUD, now_s=NOW_S, deadlines=DEADLINES)

    assert (lost.missing_count, lost.missing_since_s) == (3, 5.0)
    assert (found.missing_count, found.missing_since_s) == (0, None)


def test_advance_changes_nothing_else_and_not_its_argument() -> None:
    before = make_instance(state=S.BOOTING, node_id="n", lease_until_s=7.0)
    copy = before.model_copy(deep=True)

    after = advance(before, F.NODE_JOINED, now_s=NOW_S, deadlines=DEADLINES)

    assert before == copy
    changed = {k for k, v in after.model_dump().items() if v != before.model_dump()[k]}
    assert changed == {"state", "state_at_s", "joined_at_s"}
