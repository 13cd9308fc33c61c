"""How long to leave a failing thing alone."""

from __future__ import annotations


def backoff_s(
    failure_count: int, *, base_s: float = 180.0, cap_s: float = 1_800.0, jitter: float = 0.0
) -> float:
    """Return how long to wait after failures in a row.

    Doubles each time, so that a sold-out zone costs two calls an hour, not one per tick.

    Args:
        failure_count: Failures in a row, at least 1.
        base_s: Delay after the first failure.
        cap_s: Longest delay.
        jitter: A random number in `[0, 1)`. Half of the delay is fixed and half is drawn, so
            that offers that failed together are not tried together, and none at once.

    Returns:
        A delay in `[base_s / 2, cap_s]`, seconds, for a base that is not above the cap.

    Raises:
        ValueError: `failure_count` is below 1.
    """
    if failure_count < 1:
        raise ValueError(f"failure_count is {failure_count}; it counts failures, so at least 1")
    # The exponent is bounded: 2.0 ** 2000 is not a number any more.
    full_s = min(cap_s, base_s * 2.0 ** min(failure_count - 1, 30))
    return full_s / 2 + full_s / 2 * (1.0 - jitter)
