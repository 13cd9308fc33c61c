"""The highest count of a span of time, remembered in few entries."""

from __future__ import annotations

from hybrid.core.policy.services.plan import Held


def held(entries: Held, now_s: float, count: int, span_s: float) -> Held:
    """Return the entries with one more; the first of them is the highest of the span.

    Entries that a newer one exceeds can never be the highest again, so they go.
    """
    kept = [entry for entry in entries if now_s - span_s < entry[0] < now_s and entry[1] > count]
    return (*kept, (now_s, count))
