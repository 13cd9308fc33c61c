"""The services of `hybrid status`: what each promises, and whether it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.cli import words
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hybrid.cli.table import Part
    from hybrid.core.views import SloView


def service_parts(services: Sequence[SloView], now_s: float) -> list[Part]:
    """Return the table of services, and nothing when there are none."""
    if not services:
        return []
    columns = (
        "SERVICE",
        "PROMISE",
        Column("MEASURED", is_number=True),
        "STATE",
        Column("FOR", is_number=True),
        Column("REPLICAS", is_number=True),
        Column("WHY", is_long=True),
    )
    return [text(""), table(columns, (_row(service, now_s) for service in services))]


def _row(service: SloView, now_s: float) -> tuple[str, ...]:
    return (
        service.name,
        f"p{service.percentile:g} <= {latency(service.target_ms)}",
        latency(service.measured_ms),
        service.state,
        words.age(service.since_at_s, now_s),
        f"{_count(service.running_count)}/{_count(service.wanted_count)}",
        _why(service),
    )


def latency(value_ms: float | None) -> str:
    """Return a latency: `240ms`, `1.5s`."""
    if value_ms is None:
        return words.UNKNOWN
    return f"{value_ms:.0f}ms" if value_ms < 1000 else f"{value_ms / 1000:.3g}s"


def _count(count: int | None) -> str:
    return words.UNKNOWN if count is None else str(count)


def _why(service: SloView) -> str:
    said = service.why
    if service.loan_count:
        said += f". {words.count(service.loan_count, 'replica')} on GPUs of batch jobs"
    if service.ahead_count:
        wanted = words.count(service.ahead_count, "replica")
        said += f". Nodes are wanted at once for {wanted}"
    return said
