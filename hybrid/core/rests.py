"""Offers that rest after a failure, as people and programs see them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hybrid.core.models import Model, Offer, OfferFailure
from hybrid.core.scopes import scope_keys, scope_of


class RestView(Model):
    """Something that failed and is left alone for a while: an offer, a place or an account.

    Attributes:
        key: What rests: an offer id, or `zone:`, `region:` or `account:` and its name.
        scope: How far it reaches: `offer`, `zone`, `region` or `account`.
        error: Kind of the failure: `CapacityError`, `QuotaError`, `AuthError`, ...
        message: What the cloud said.
        failure_count: Failures in a row.
        until_at_s: When it may be tried again.
        is_over: That time has come: the next launch that wants it tries it, alone.
        offer_ids: The offers that it reaches now.
    """

    key: str
    scope: str
    error: str
    message: str
    failure_count: int
    until_at_s: float
    is_over: bool
    offer_ids: tuple[str, ...] = ()


def rest_views(
    failures: Iterable[OfferFailure], offers: Sequence[Offer], *, now_s: float
) -> tuple[RestView, ...]:
    """Return what rests, the longest first."""
    known = tuple(failures)
    reached: dict[str, list[str]] = {failure.key: [] for failure in known}
    for offer in offers if reached else ():
        for key in scope_keys(offer):
            if key in reached:
                reached[key].append(offer.offer_id)
    views = [
        RestView(
            key=failure.key,
            scope=scope_of(failure.key),
            error=failure.error,
            message=failure.message,
            failure_count=failure.failure_count,
            until_at_s=failure.until_s,
            is_over=failure.until_s <= now_s,
            offer_ids=tuple(sorted(reached[failure.key])),
        )
        for failure in known
    ]
    return tuple(sorted(views, key=lambda view: (-view.until_at_s, view.key)))
