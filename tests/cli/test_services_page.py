"""The services on the page of `hybrid status`."""

from __future__ import annotations

from hybrid.cli.services_page import latency, service_parts
from hybrid.core.views import SloView

CHAT = SloView(
    name="chat",
    app="chat",
    percentile=95,
    target_ms=800,
    window_s=60,
    state="broken",
    since_at_s=960.0,
    measured_ms=1_900.0,
    why="p95 is 1900 ms",
    running_count=2,
    wanted_count=4,
    ahead_count=2,
)


def lines(*services: SloView) -> list[str]:
    return [line for part in service_parts(services, 1_000.0) for line in part.plain()]


def test_without_services_there_is_nothing() -> None:
    assert lines() == []


def test_a_breach_says_what_was_measured_and_what_is_wanted() -> None:
    _, head, row = lines(CHAT)

    assert head.split() == ["SERVICE", "PROMISE", "MEASURED", "STATE", "FOR", "REPLICAS", "WHY"]
    assert row == (
        "chat     p95 <= 800ms      1.9s  broken  40s       2/4  "
        "p95 is 1900 ms. Nodes are wanted at once for 2 replicas"
    )


def test_what_is_unknown_is_a_question_mark_and_never_a_zero() -> None:
    unknown = SloView(
        name="chat",
        app="chat",
        percentile=99.9,
        target_ms=800,
        window_s=60,
        state="unknown",
        why="no request came in the last 10 s",
    )

    row = lines(unknown)[-1]

    assert row == (
        "chat     p99.9 <= 800ms         ?  unknown    ?       ?/?  "
        "no request came in the last 10 s"
    )


def test_latencies_are_short() -> None:
    assert [latency(ms) for ms in (None, 0.4, 240, 999, 1_500, 61_000)] == [
        "?",
        "0ms",
        "240ms",
        "999ms",
        "1.5s",
        "61s",
    ]
