"""Token buckets never let more through than their rate and burst."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.bucket import Bucket, Rate


def test_a_burst_goes_through_and_then_the_rate_holds() -> None:
    bucket = Bucket.full(Rate(per_s=2.0, burst=3), now_s=0.0)

    waits = []
    for _ in range(4):
        bucket, wait_s = bucket.take(now_s=0.0)
        waits.append(wait_s)

    assert waits == [0.0, 0.0, 0.0, 0.5]
    assert bucket.take(now_s=0.5)[1] == 0.0


def test_a_clock_that_went_back_gives_nothing() -> None:
    bucket = Bucket.full(Rate(per_s=1.0, burst=1), now_s=100.0)
    bucket, _ = bucket.take(now_s=100.0)

    assert bucket.take(now_s=0.0)[1] == 1.0


@given(
    per_s=st.floats(0.1, 50),
    burst=st.integers(1, 20),
    steps=st.lists(st.floats(0, 3), min_size=1, max_size=60),
)
def test_never_more_than_burst_plus_rate_times_time(
    per_s: float, burst: int, steps: list[float]
) -> None:
    bucket, now_s, passed = Bucket.full(Rate(per_s=per_s, burst=burst), now_s=0.0), 0.0, 0
    for step_s in steps:
        now_s += step_s
        bucket, wait_s = bucket.take(now_s=now_s)
        passed += wait_s == 0.0

    assert passed <= burst + per_s * now_s + 1e-6
