"""The slow loop: renting for what lasts and for what loans cannot give, and returning it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.core.models import Reason
from hybrid.core.policy.services.need import Look
from hybrid.core.policy.services.params import ServiceParams
from hybrid.core.policy.services.plan import Release, Rent, ServiceAction
from hybrid.core.policy.services.view import ServiceView
from hybrid.core.policy.services.why import Why
from hybrid.core.policy.words import number, plural


@dataclass(frozen=True, slots=True)
class Wish:
    """How many rented replicas there should be.

    Attributes:
        room_count: For room that home and loans cannot give, at the rate after a boot.
        lasting_count: For need beyond home that lasts.
    """

    room_count: int
    lasting_count: int

    @property
    def count(self) -> int:
        """The larger of the two."""
        return max(self.room_count, self.lasting_count)


def wish(view: ServiceView, seen: Look, lasting: int, params: ServiceParams) -> Wish:
    """Return how many rented replicas there should be.

    Args:
        view: The service.
        seen: What is known of it.
        lasting: Need beyond home that was there all the time; 0 when that is not known.
        params: The thresholds.
    """
    # what may be borrowed is not known: count on no more than is there
    loans = view.on_loan_count if view.borrowable_count is None else view.borrowable_count
    ahead_rps = (seen.rate_rps or 0.0) * seen.growth * (1 + params.spike_share)
    # what waits now is served within the time that one more boot takes
    ahead_rps += (seen.backlog or 0.0) / (view.boot_s or params.assumed_boot_s)
    replicas = math.ceil(ahead_rps / view.replica_rps - 1e-9)
    return Wish(max(0, replicas - view.home_count - loans), max(0, lasting))


def slow_actions(
    view: ServiceView, seen: Look, wished: Wish, keep: int | None, params: ServiceParams
) -> Iterator[ServiceAction | Reason]:
    """Yield what to rent or return, and what stands in the way.

    Args:
        view: The service.
        seen: What is known of it.
        wished: How many should be rented.
        keep: Most that was needed or wished over the hold; `None` when not known, then
            nothing is returned.
        params: The thresholds.
    """
    on_rent, most = view.on_rent_count, view.rent_limit_count
    facts = _facts(view, seen, wished)
    wanted = min(wished.count, most)
    if wished.count > max(most, on_rent):
        message = f"{plural(wished.count, 'rented replica')} would help, and {number(most)} may be"
        yield Reason(code=Why.RENT_LIMIT, message=message, facts=facts)
    if on_rent > most:
        message = f"only {number(most)} may be rented, and {number(on_rent)} are"
        reason = Reason(code=Why.RENT_LIMIT, message=message, facts=facts)
        yield Release(count=on_rent - most, reason=reason)
    elif wanted > on_rent:
        yield from _rent(view, wished, min(wanted - on_rent, params.rents_per_plan), facts, params)
        if wanted - on_rent > params.rents_per_plan:
            message = f"at most {plural(params.rents_per_plan, 'replica')} are rented at a time"
            yield Reason(code=Why.RENT_RAMP, message=message, facts=facts)
    elif keep is not None and on_rent > keep:
        message = f"{plural(keep, 'rented replica')} were enough for {params.rent_hold_s:g} s"
        reason = Reason(
            code=Why.SERVICE_UNUSED, message=message, facts={**facts, "peak_count": keep}
        )
        yield Release(count=on_rent - keep, reason=reason)


def _rent(
    view: ServiceView,
    wished: Wish,
    count: int,
    facts: dict[str, float | int | str],
    params: ServiceParams,
) -> Iterator[ServiceAction]:
    if wished.lasting_count >= wished.room_count:
        code = Why.SERVICE_LASTING
        message = (
            f"{plural(wished.lasting_count, 'replica')} more than home has were needed for "
            f"{params.lasting_s:g} s without a break"
        )
    else:
        code = Why.SERVICE_ROOM
        message = (
            f"home and loans lack {plural(wished.room_count, 'replica')} for the rate to come "
            "and a spike on top"
        )
    usd = round(count * view.usd_per_hour, 4)
    reason = Reason(code=code, message=message, facts={**facts, "usd_per_hour": usd})
    yield Rent(count=count, reason=reason)


def _facts(view: ServiceView, seen: Look, wished: Wish) -> dict[str, float | int | str]:
    return {
        "rate_rps": "unknown" if seen.rate_rps is None else round(seen.rate_rps, 3),
        "growth_ratio": round(seen.growth, 3),
        "room_count": wished.room_count,
        "lasting_count": wished.lasting_count,
        "on_rent_count": view.on_rent_count,
        "rent_limit_count": view.rent_limit_count,
    }
