"""Holds one more instance against the caps, inside the transaction that reserves it."""

from __future__ import annotations

from sqlalchemy import Connection, Select, and_, case, func, select

from hybrid.adapters.ledger.schema import reservations, spends
from hybrid.core.cost import (
    Payment,
    Rental,
    cap_breach,
    commitment_of,
    day_start_s,
    month_start_s,
)
from hybrid.core.errors import CapExceededError
from hybrid.core.models import Caps, Commitment, Instance


def require_caps(
    connection: Connection, instance: Instance, *, caps: Caps, exit_s: float, now_s: float
) -> None:
    """Raise `CapExceededError` unless the instance fits beside all live reservations.

    Args:
        connection: A writing transaction: nobody else can reserve until it ends.
        instance: What is asked for.
        caps: See `Ledger.request`.
        exit_s: See `Ledger.request`.
        now_s: Now.
    """
    breach = cap_breach(
        instance.offer,
        caps=caps,
        committed=_committed(connection, exit_s=exit_s, now_s=now_s),
        exit_s=exit_s,
    )
    if breach is not None:
        raise CapExceededError(f"cannot rent {instance.offer.offer_id}: {breach}", cap=breach.cap)


def _committed(connection: Connection, *, exit_s: float, now_s: float) -> Commitment:
    """Return the sums from bare columns: a burst of launches reads no instance's JSON."""
    live = connection.execute(
        select(reservations.c.from_s, reservations.c.usd_per_hour, reservations.c.gpu_count)
    )
    booked = connection.execute(payments_of_month(now_s=now_s))
    return commitment_of(
        map(Rental._make, live.all()),
        map(Payment._make, booked.all()),
        now_s=now_s,
        exit_s=exit_s,
    )


def payments_of_month(*, now_s: float) -> Select[tuple[float, float, float]]:
    """Return the query for this month's payments, ten thousand of them in a few rows.

    Those wholly of today, and those wholly of earlier days of this month, are summed by the
    database. Only those over a midnight that matters stay apart: they must be split.
    """
    day_s, month_s = day_start_s(now_s), month_start_s(now_s)
    kind = case(
        (spends.c.from_s >= day_s, "today"),
        (and_(spends.c.from_s >= month_s, spends.c.to_s <= day_s), "earlier"),
        else_="split/" + spends.c.instance_id,
    )
    return (
        select(func.min(spends.c.from_s), func.max(spends.c.to_s), func.sum(spends.c.usd))
        .where(spends.c.to_s > month_s)
        .group_by(kind)
    )
