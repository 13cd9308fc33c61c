"""Money: what instances cost, what is promised, and whether one more fits under the caps.

An estimate from prices and times, on the safe side: an instance is paid from the instant of
its intent to the instant the cloud's own word proved it gone. Days and months are UTC.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from hybrid.core.models import Caps, Commitment, Instance, InstanceState, Offer, Spend

DAY_S = 86_400.0
HOUR_S = 3_600.0

ROUNDING = 1e-9
"""Sums of prices carry rounding errors; three times $0.10 must fit under a cap of $0.30."""


class Rental(NamedTuple):
    """What money needs to know of an instance that is not ended."""

    from_s: float
    usd_per_hour: float
    gpu_count: int


class Payment(NamedTuple):
    """Money for a stretch of time, spread evenly over it."""

    from_s: float
    to_s: float
    usd: float


class CapBreach(NamedTuple):
    """The cap that one more instance would pass.

    Attributes:
        cap: Its name, as in `Caps`.
        kept: The part of `used` that is only kept in reserve, US dollars.
    """

    cap: str
    limit: float
    used: float
    asked: float
    kept: float = 0.0

    def __str__(self) -> str:
        """Return one sentence with all numbers and the way out."""
        kept = f", {self.kept:.6g} of it kept to bring live instances home" if self.kept else ""
        wait = "wait for an instance to end"
        if self.cap in ("usd_per_day", "usd_per_month"):
            wait += f" or for the next UTC {self.cap.removeprefix('usd_per_')}"
        return (
            f"cap {self.cap} is {self.limit:.6g}: used {self.used:.6g}{kept}, "
            f"asked {self.asked:.6g}; {wait}, or raise the cap under 'budget' in the configuration"
        )


def day_start_s(now_s: float) -> float:
    """Return the instant the UTC day of `now_s` began."""
    return now_s // DAY_S * DAY_S


def month_start_s(now_s: float) -> float:
    """Return the instant the UTC month of `now_s` began."""
    first = datetime.fromtimestamp(now_s, tz=UTC).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    return first.timestamp()


def price_usd(usd_per_hour: float, *, from_s: float, to_s: float) -> float:
    """Return the price of a stretch of time; 0 when it ends before it began.

    A wall clock that was set back must not earn money.
    """
    return usd_per_hour * max(0.0, to_s - from_s) / HOUR_S


def rental(instance: Instance) -> Rental:
    """Return what money needs to know of a live instance."""
    offer = instance.offer
    return Rental(instance.created_at_s, offer.usd_per_hour, offer.gpu_count)


def payment(spend: Spend) -> Payment:
    """Return the money of a booked spend and the time it was for."""
    return Payment(spend.from_s, spend.to_s, spend.usd)


def instance_usd(instance: Instance, *, now_s: float) -> float:
    """Return what an instance cost so far, ended or not.

    A refused launch rented nothing and costs nothing.
    """
    if instance.state is InstanceState.FAILED:
        return 0.0
    to_s = _ended_at_s(instance) if instance.is_ended else now_s
    return price_usd(instance.offer.usd_per_hour, from_s=instance.created_at_s, to_s=to_s)


def spend_of(instance: Instance) -> Spend | None:
    """Return the spend to book for an ended instance; `None` when it rented nothing."""
    if instance.state is not InstanceState.TERMINATED:
        return None
    to_s = max(instance.created_at_s, _ended_at_s(instance))
    return Spend(
        instance_id=instance.instance_id,
        provider=instance.offer.provider,
        offer_id=instance.offer.offer_id,
        reason_code=instance.reason.code,
        from_s=instance.created_at_s,
        to_s=to_s,
        gpu_count=instance.offer.gpu_count,
        usd=instance_usd(instance, now_s=to_s),
    )


def spent_usd(payments: Iterable[Payment], *, since_s: float) -> float:
    """Return the money of the time after `since_s`.

    A payment that began earlier counts by the share of its time after `since_s`, so an
    instance that lived over midnight is split between the two days.
    """
    return math.fsum(_part_usd(item, since_s=since_s) for item in payments)


def commitment(
    instances: Iterable[Instance], spends: Iterable[Spend], *, now_s: float, exit_s: float
) -> Commitment:
    """Return what is promised and spent so far.

    Args:
        instances: Ended ones are left out: their money is in `spends`.
        spends: At least those that ended after the month began.
        now_s: Now.
        exit_s: Time each live instance may still run when money must stop.
    """
    return commitment_of(
        [rental(instance) for instance in instances if not instance.is_ended],
        [payment(spend) for spend in spends],
        now_s=now_s,
        exit_s=exit_s,
    )


def commitment_of(
    rentals: Iterable[Rental], payments: Iterable[Payment], *, now_s: float, exit_s: float
) -> Commitment:
    """Return what is promised and spent so far, from bare rows; see `commitment`."""
    live, booked = tuple(rentals), tuple(payments)
    day_s, month_s = day_start_s(now_s), month_start_s(now_s)
    usd_per_hour = math.fsum(item.usd_per_hour for item in live)
    return Commitment(
        node_count=len(live),
        gpu_count=sum(item.gpu_count for item in live),
        usd_per_hour=usd_per_hour,
        day_usd=spent_usd(booked, since_s=day_s) + _run_usd(live, since_s=day_s, now_s=now_s),
        month_usd=spent_usd(booked, since_s=month_s) + _run_usd(live, since_s=month_s, now_s=now_s),
        day_exit_usd=usd_per_hour * exit_s / HOUR_S,
    )


def cap_breach(
    offer: Offer, *, caps: Caps, committed: Commitment, exit_s: float
) -> CapBreach | None:
    """Return the first cap that one more instance of `offer` would pass, or `None`.

    Inside the day and month caps the money to bring every live instance home, this one
    included, is kept in reserve, so that a cap also holds when it is reached.
    """
    exit_usd = offer.usd_per_hour * exit_s / HOUR_S
    kept_usd = committed.day_exit_usd
    checks = (
        ("node_count", caps.node_count, committed.node_count, 1, 0.0),
        ("gpu_count", caps.gpu_count, committed.gpu_count, offer.gpu_count, 0.0),
        ("usd_per_hour", caps.usd_per_hour, committed.usd_per_hour, offer.usd_per_hour, 0.0),
        ("usd_per_day", caps.usd_per_day, committed.day_usd + kept_usd, exit_usd, kept_usd),
        ("usd_per_month", caps.usd_per_month, committed.month_usd + kept_usd, exit_usd, kept_usd),
    )
    for cap, limit, used, asked, kept in checks:
        if limit is not None and used + asked > limit + ROUNDING * max(1.0, limit):
            return CapBreach(cap=cap, limit=limit, used=used, asked=asked, kept=kept)
    return None


def _run_usd(live: Iterable[Rental], *, since_s: float, now_s: float) -> float:
    """Return what live instances cost after `since_s`, up to now."""
    return math.fsum(
        price_usd(item.usd_per_hour, from_s=max(since_s, item.from_s), to_s=now_s) for item in live
    )


def _ended_at_s(instance: Instance) -> float:
    return instance.state_at_s if instance.ended_at_s is None else instance.ended_at_s


def _part_usd(item: Payment, *, since_s: float) -> float:
    if item.from_s >= since_s:
        return item.usd
    if item.to_s <= since_s:
        return 0.0
    return item.usd * (item.to_s - since_s) / (item.to_s - item.from_s)
