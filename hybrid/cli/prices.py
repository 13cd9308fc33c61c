"""A pool's price on a page: how much, and who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.cli import words

if TYPE_CHECKING:
    from hybrid.core.offline import PoolView


def price(pool: PoolView) -> str:
    """Return what an hour costs, or at most costs."""
    if pool.usd_per_hour is None and pool.at_most_usd_per_hour is not None:
        return f"up to {words.rate(pool.at_most_usd_per_hour)}"
    return words.rate(pool.usd_per_hour)


def price_of(pool: PoolView) -> str:
    """Return the day of a listed price, `you` for one of yours, and what a missing one lacks."""
    if pool.reason is not None:
        return pool.reason.code
    if pool.is_own_price:
        return "you"
    return f"list {pool.as_of}" if pool.as_of else words.UNKNOWN
