"""Builders of views of a service; a test names only what it is about."""

from __future__ import annotations

from typing import Any

from hybrid.core.policy.services import Rate, ServiceMemory, ServiceView

NOW_S = 100_000.0
PATIENT = ServiceMemory(known_since_s=0.0)
"""Everything was known for long, and nothing was needed."""


def rates(rps: float | None, *, count: int = 60, now_s: float = NOW_S) -> tuple[Rate, ...]:
    """Return windows of ten seconds with the same rate, the newest just ended."""
    return tuple(Rate(end_at_s=now_s - 10.0 * n, span_s=10.0, rps=rps) for n in range(count))


def make_view(**changes: Any) -> ServiceView:
    """Return ten replicas at home of 4 requests/s each, twenty loans and 100 rents possible."""
    values: dict[str, Any] = {
        "service": "chat",
        "now_s": NOW_S,
        "replica_rps": 4.0,
        "rates": rates(20.0),
        "backlog": 0.0,
        "dispersion": 1.0,
        "home_count": 10,
        "borrowable_count": 20,
        "rentable_count": 100,
        "usd_per_hour": 3.0,
        "boot_s": 600.0,
    }
    return ServiceView(**(values | changes))
