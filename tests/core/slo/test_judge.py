"""Whether a promise is kept."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.slo import Judgement, Reading, Slo, SloState, judge

SLO = Slo(target_ms=100, window_s=60)
MET, BROKEN, UNKNOWN = SloState.MET, SloState.BROKEN, SloState.UNKNOWN


def readings(*values: float | None, span_s: float = 10.0, why: str = "gone") -> list[Reading]:
    """Readings of ten seconds each, the last one at 0."""
    count = len(values)
    return [
        Reading(
            at_s=(n + 1 - count) * span_s,
            span_s=span_s,
            value_ms=value,
            why="" if value is not None else why,
            rate_rps=5.0,
        )
        for n, value in enumerate(values)
    ]


def verdict(*values: float | None, before: Judgement | None = None) -> Judgement:
    return judge(readings(*values), SLO, before or Judgement(), now_s=0.0)


@pytest.mark.parametrize(
    ("values", "state"),
    [
        pytest.param((50,) * 6, MET, id="all below"),
        pytest.param((500,) * 6, BROKEN, id="all above"),
        pytest.param((100,) * 6, MET, id="at the target is kept"),
        pytest.param((50, 50, 50, 50, 50, 9_999), MET, id="one outlier"),
        pytest.param((50, 50, 50, 200, 200, 200), MET, id="half above"),
        pytest.param((50, 50, 200, 200, 200, 200), BROKEN, id="most above"),
        pytest.param((None, None, None, 200, 200, 200), BROKEN, id="half of the window, above"),
        pytest.param((None, None, None, None, 50, 50), UNKNOWN, id="less than half known"),
        pytest.param((200,), UNKNOWN, id="one reading"),
        pytest.param((), UNKNOWN, id="none"),
        pytest.param((math.nan,) * 6, UNKNOWN, id="not a number"),
        pytest.param((math.inf,) * 6, UNKNOWN, id="infinite"),
        pytest.param((-1,) * 6, UNKNOWN, id="below zero"),
        pytest.param((0,) * 6, MET, id="a measured zero is a value"),
    ],
)
def test_judgement(values: tuple[float | None, ...], state: SloState) -> None:
    assert verdict(*values).state is state


def test_unknown_says_why_and_remembers_what_was_known() -> None:
    broken = verdict(*(500,) * 6)

    lost = verdict(*(None,) * 6, before=broken)

    assert (lost.state, lost.known_state, lost.why) == (UNKNOWN, BROKEN, "gone")
    assert lost.value_ms is None
    assert lost.rate_rps is None


def test_a_breach_begins_with_the_first_reading_over_the_target() -> None:
    broken = verdict(50, 50, 200, 200, 200, 200)
    later = judge(readings(*(200,) * 6), SLO, broken, now_s=0.0)

    assert broken.since_s == -40.0
    assert later.since_s == -40.0
    assert broken.value_ms == 200
    assert broken.why == "p95 is 200 ms, 67% of the last 60 s over 100 ms"


def test_a_broken_promise_is_kept_again_only_when_little_is_over_the_target() -> None:
    broken = Judgement(state=BROKEN, since_s=-300.0, known_state=BROKEN)

    assert verdict(50, 50, 50, 50, 200, 200, before=broken).state is BROKEN
    assert verdict(50, 50, 50, 50, 50, 200, before=broken).state is MET


def test_a_breach_outlasts_a_moment_in_which_nothing_is_known() -> None:
    broken = verdict(*(500,) * 6)
    lost = verdict(*(None,) * 6, before=broken)

    assert verdict(50, 50, 50, 50, 200, 200, before=lost).state is BROKEN


def test_stale_readings_say_nothing() -> None:
    found = judge(readings(*(50,) * 6), SLO, Judgement(), now_s=70.0)

    assert found.state is UNKNOWN
    assert found.why == "nothing was measured in the last 60 s"


def test_the_window_has_no_gap_while_the_next_reading_is_on_its_way() -> None:
    short = Slo(target_ms=100, window_s=20)

    for now_s in (0.0, 5.0, 9.9):
        assert judge(readings(50, 50), short, Judgement(), now_s=now_s).state is MET


def test_a_window_without_requests_is_unknown_and_quiet() -> None:
    quiet = [
        Reading(at_s=-10.0 * n, span_s=10.0, why="no request came", is_quiet=True) for n in range(6)
    ]

    found = judge(quiet, SLO, Judgement(), now_s=0.0)

    assert (found.state, found.is_quiet, found.rate_rps) == (UNKNOWN, True, 0.0)
    assert not judge([*quiet[:3], *readings(None)], SLO, Judgement(), now_s=0.0).is_quiet


any_values = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))


@given(st.lists(any_values, max_size=8), st.sampled_from(SloState))
def test_every_input_has_a_judgement(values: list[float | None], known: SloState) -> None:
    found = verdict(*values, before=Judgement(known_state=known))

    assert (found.state is UNKNOWN) == (found.value_ms is None)
    assert found.why
    assert found.known_state is not UNKNOWN or known is UNKNOWN


@given(
    st.lists(st.floats(0, 100), min_size=6, max_size=6), st.integers(0, 5), st.floats(100.1, 1e9)
)
def test_one_outlier_never_breaks_a_promise(values: list[float], at: int, outlier: float) -> None:
    values[at] = outlier

    assert verdict(*values).state is MET


@given(st.lists(st.floats(0, 200), min_size=6, max_size=6))
def test_whoever_is_kept_after_a_breach_would_be_kept_without_one(values: list[float]) -> None:
    broken = Judgement(state=BROKEN, since_s=-300.0, known_state=BROKEN)

    if verdict(*values, before=broken).state is MET:
        assert verdict(*values).state is MET


@given(st.permutations(readings(50, None, 200, 200, 200, 90)))
def test_the_order_of_readings_does_not_matter(shuffled: list[Reading]) -> None:
    assert judge(shuffled, SLO, Judgement(), now_s=0.0) == verdict(50, None, 200, 200, 200, 90)
