"""Instants as traces write them."""

from __future__ import annotations

from datetime import UTC, datetime

from hybrid.sim.traces.reading import BadLineError


def instant_s(cell: str) -> float:
    """Return seconds since 1970 of `2017-10-09 07:01:55`, with up to nine digits of a second.

    Without a zone the time is taken as UTC: only differences are used.

    Raises:
        BadLineError: It is none.
    """
    text = cell.strip()
    head, dot, fraction = text.partition(".")
    try:
        at = datetime.fromisoformat(head)
    except ValueError:
        raise BadLineError("the time of submission is not one", text) from None
    if dot and not (fraction.isascii() and fraction.isdigit() and len(fraction) <= 9):
        raise BadLineError("the time of submission is not one", text)
    seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return seconds + float(f"0.{fraction or 0}")
