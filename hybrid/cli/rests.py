"""Tables of what cannot be rented now: what rests after a failure, and what is no offer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.cli import words
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hybrid.cli.table import Part
    from hybrid.core.models.withheld import Withheld
    from hybrid.core.rests import RestView


def rest_parts(
    resting: Sequence[RestView], withheld: Sequence[Withheld], now_s: float
) -> list[Part]:
    """Return what to show of both; nothing when there is none of them."""
    parts: list[Part] = []
    if resting:
        parts += [text(""), _rest_table(resting, now_s)]
    if withheld:
        parts += [text(""), _withheld_table(withheld)]
    return parts


def _rest_table(resting: Sequence[RestView], now_s: float) -> Part:
    columns = (
        "RESTS",
        "SCOPE",
        "ERROR",
        Column("FAILED", is_number=True),
        "TRIED AGAIN",
        Column("WHY", is_long=True),
    )
    return table(columns, (_rest_row(rest, now_s) for rest in resting))


def _rest_row(rest: RestView, now_s: float) -> Sequence[str]:
    again = "at the next need" if rest.until_at_s <= now_s else _in(rest.until_at_s - now_s)
    reached = words.count(len(rest.offer_ids), "offer")
    scope = rest.scope if rest.scope == "offer" else f"{rest.scope}, {reached}"
    return (rest.key, scope, rest.error, f"{rest.failure_count}x", again, rest.message)


def _in(left_s: float) -> str:
    return f"in {words.duration(max(1.0, left_s))}"


def _withheld_table(withheld: Sequence[Withheld]) -> Part:
    columns = ("NO OFFER", "REASON", Column("WHY", is_long=True))
    return table(
        columns, ((pool.offer_id, pool.reason.code, pool.reason.message) for pool in withheld)
    )
