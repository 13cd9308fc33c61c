"""How many replicas a promise takes, and how they come and go."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.slo import (
    Ahead,
    Judgement,
    Load,
    Slo,
    SloState,
    Steering,
    SteeringParams,
    ahead,
    excess,
    need_count,
    steer,
)

SLO = Slo(target_ms=1_000, window_s=60)
PARAMS = SteeringParams(calm_s=300, step_s=60, silent_s=600)
BROKEN = Judgement(
    SloState.BROKEN,
    since_s=0.0,
    value_ms=1_500.0,
    why="slow",
    rate_rps=10.0,
    known_state=SloState.BROKEN,
)
MET = replace(BROKEN, state=SloState.MET, value_ms=300.0, rate_rps=10.0, why="fine")
UNKNOWN = Judgement(why="no answer")


@pytest.mark.parametrize(
    ("judgement", "load", "count"),
    [
        pytest.param(MET, Load(4, 4, 0), None, id="kept"),
        pytest.param(UNKNOWN, Load(4, 4, 900), None, id="unknown"),
        pytest.param(BROKEN, Load(None, 4, 900), None, id="replicas not known"),
        pytest.param(BROKEN, Load(4, 4, 10), 5, id="nothing waits beyond the target"),
        pytest.param(BROKEN, Load(4, 4, 310), 7, id="300 beyond the target, grown in two windows"),
        pytest.param(replace(BROKEN, since_s=-1e12), Load(4, 4, 310), 6, id="300 since long ago"),
        pytest.param(BROKEN, Load(1, 1, 9_999), 4, id="a small one grows by three"),
        pytest.param(BROKEN, Load(4, 4, 9_999), 8, id="never more than twice as many"),
        pytest.param(BROKEN, Load(4, 4, None), 6, id="by the latency when the rest is unknown"),
        pytest.param(replace(BROKEN, rate_rps=None), Load(1, 1, 5), 2, id="one more at least"),
    ],
)
def test_need(judgement: Judgement, load: Load, count: int | None) -> None:
    assert need_count(judgement, load, SLO, now_s=120.0) == count


def rented_ahead(
    load: Load = Load(4, 4, 310),  # noqa: B008
    *,
    judgement: Judgement = BROKEN,
    before: float | None = 250.0,
    now_s: float = 40.0,
    most_count: int = 99,
) -> Ahead:
    return ahead(
        judgement,
        load,
        SLO,
        before=before,
        before_s=30.0,
        boot_s=120.0,
        most_count=most_count,
        now_s=now_s,
    )


def test_nodes_are_rented_ahead_when_what_waits_does_not_become_less() -> None:
    found = rented_ahead()

    assert found.count == 4
    assert (
        found.why
        == "p95 of 1500 ms, 1000 allowed, and 310 requests in the system do not become fewer"
    )


def test_nothing_is_rented_ahead_for_what_clears_before_a_boot() -> None:
    assert rented_ahead(before=610.0).count == 0


def test_nodes_are_rented_ahead_for_what_clears_too_slowly() -> None:
    assert rented_ahead(before=311.0).why.endswith("requests in the system take 9000 s to clear")


def test_without_a_backlog_a_breach_counts_after_the_time_of_a_boot() -> None:
    assert rented_ahead(Load(4, 4, None), now_s=119.0).count == 0
    assert rented_ahead(Load(4, 4, None), now_s=121.0).count == 2


def test_replicas_that_serve_asks_for_are_among_the_missing() -> None:
    assert rented_ahead(Load(4, 9, 310)).count == 5


def test_nothing_is_rented_ahead_beyond_the_limit() -> None:
    assert rented_ahead(Load(4, 9, 310), most_count=6).count == 2
    assert rented_ahead(most_count=4).count == 0


@pytest.mark.parametrize("judgement", [MET, UNKNOWN])
def test_nothing_is_rented_ahead_of_no_breach(judgement: Judgement) -> None:
    assert rented_ahead(judgement=judgement).count == 0


def settled(*, running: int = 4, **changes: object) -> Steering:
    return replace(Steering(counts=(running, running)), **changes)  # type: ignore[arg-type]


def test_a_breach_raises_at_once() -> None:
    count, memory = steer(settled(), BROKEN, Load(4, 4, 310), SLO, PARAMS, now_s=0)

    assert count == 8
    assert memory.capacity_rps == 2.5
    assert memory.why == "slow; 8 replicas instead of 4"


def test_a_raise_waits_for_its_replicas_and_then_for_a_window() -> None:
    _, memory = steer(settled(), BROKEN, Load(4, 4, 310), SLO, PARAMS, now_s=0)
    starting, memory = steer(memory, BROKEN, Load(4, 8, 310), SLO, PARAMS, now_s=10)
    landed, memory = steer(memory, BROKEN, Load(8, 8, 310), SLO, PARAMS, now_s=30)
    waits, memory = steer(memory, BROKEN, Load(8, 8, 310), SLO, PARAMS, now_s=89)
    again, memory = steer(memory, BROKEN, Load(8, 8, 310), SLO, PARAMS, now_s=100)

    assert (starting, landed, waits, again) == (8, 8, 8, 15)


def test_replicas_go_one_at_a_time_when_fewer_were_enough_for_long() -> None:
    memory = settled(running=8, capacity_rps=2.5, capacity_at_s=0.0)
    low = replace(MET, rate_rps=5.0)
    counts = []
    target = 8
    for now_s in range(0, 600, 10):
        count, memory = steer(memory, low, Load(target, target, 1), SLO, PARAMS, now_s=now_s)
        if count != target:
            counts.append((now_s, count))
            target = count

    assert counts == [(300, 7), (370, 6), (440, 5), (510, 4), (580, 3)]


def test_replicas_that_the_rate_needs_stay() -> None:
    memory = settled(running=8, capacity_rps=2.5, capacity_at_s=0.0)

    for now_s in range(0, 3_000, 60):
        count, memory = steer(
            memory, replace(MET, rate_rps=14.0), Load(8, 8, 1), SLO, PARAMS, now_s=now_s
        )
        assert count == 8


def test_the_tail_of_a_breach_does_not_teach_that_replicas_serve_little() -> None:
    _, memory = steer(settled(), BROKEN, Load(4, 4, 310), SLO, PARAMS, now_s=10)
    tail = replace(BROKEN, rate_rps=1.0)
    _, memory = steer(memory, tail, Load(8, 8, 0), SLO, PARAMS, now_s=50)
    assert memory.capacity_rps == 2.5

    next_one = replace(tail, since_s=500.0)
    _, memory = steer(memory, next_one, Load(8, 8, 0), SLO, PARAMS, now_s=540)
    assert memory.capacity_rps == 0.125


def test_what_a_replica_serves_is_learned_from_good_times_too_and_forgotten() -> None:
    memory = settled(running=2, capacity_rps=0.1, capacity_at_s=0.0)
    _, memory = steer(memory, replace(MET, rate_rps=8.0), Load(2, 2, 1), SLO, PARAMS, now_s=10)
    assert memory.capacity_rps == 4.0

    _, memory = steer(memory, MET, Load(2, 2, 1), SLO, PARAMS, now_s=3_700)
    assert memory.capacity_rps is None


def test_silence_that_was_seen_lets_replicas_go_after_long() -> None:
    silent = replace(UNKNOWN, is_quiet=True)
    memory = settled(running=3)
    counts = []
    for now_s in range(0, 800, 50):
        count, memory = steer(memory, silent, Load(3, 3, 0), SLO, PARAMS, now_s=now_s)
        counts.append(count)

    assert counts[:12] == [3] * 12
    assert counts[12:] == [2] * 4


def test_silence_never_counts_when_it_is_switched_off_or_something_still_runs() -> None:
    silent = replace(UNKNOWN, is_quiet=True)
    never = replace(PARAMS, silent_s=None)

    for load, params in ((Load(3, 3, 0), never), (Load(3, 3, 2), PARAMS), (Load(3, 3), PARAMS)):
        memory = settled(running=3)
        for now_s in range(0, 3_000, 100):
            count, memory = steer(memory, silent, load, SLO, params, now_s=now_s)
            assert count == 3


judgements = st.builds(
    Judgement,
    state=st.sampled_from(SloState),
    since_s=st.just(0.0),
    value_ms=st.one_of(st.none(), st.floats(0, 1e5)),
    rate_rps=st.one_of(st.none(), st.floats(0, 1e4)),
    known_state=st.sampled_from(SloState),
)
loads = st.builds(
    Load,
    running=st.integers(0, 50),
    target=st.integers(0, 50),
    in_system=st.one_of(st.none(), st.floats(0, 1e5)),
)


@given(st.lists(st.tuples(judgements, loads, st.floats(0, 500)), max_size=20))
def test_unknown_never_shrinks_a_breach_never_either_and_nothing_doubles(
    story: list[tuple[Judgement, Load, float]],
) -> None:
    memory, now_s = Steering(), 0.0
    for judgement, load, wait_s in story:
        now_s += wait_s
        count, memory = steer(memory, judgement, load, SLO, PARAMS, now_s=now_s)
        target, running = load.target or 0, load.running or 0
        if judgement.state is not SloState.MET:
            assert count >= target
        assert target - 1 <= count <= max(target + 1, 2 * running, running + 3)


@given(judgements, loads, st.one_of(st.none(), st.floats(0, 1e5)), st.integers(0, 60))
def test_what_is_rented_ahead_stays_within_the_limit(
    judgement: Judgement, load: Load, before: float | None, most: int
) -> None:
    found = rented_ahead(load, judgement=judgement, before=before, most_count=most)

    assert 0 <= found.count <= max(0, most - (load.running or 0))
    assert bool(found.why) == bool(found.count)


@pytest.mark.parametrize("garbage", [math.nan, math.inf, -5.0])
def test_rates_and_numbers_that_cannot_be_are_not_known(garbage: float) -> None:
    broken = Judgement(SloState.BROKEN, since_s=0.0, value_ms=1_500.0, rate_rps=garbage)
    slo = Slo(target_ms=1_000)

    assert excess(broken, Load(1, 1, 10.0), slo) is None
    assert excess(replace(broken, rate_rps=10.0), Load(1, 1, garbage), slo) is None
    assert need_count(broken, Load(1, 1, garbage), slo, now_s=100.0) == 2
