"""Names for how far a failure reaches, so that offers and failures can be matched. Pure."""

from __future__ import annotations

from hybrid.core.errors import Scope
from hybrid.core.models import Offer


def scope_key(offer: Offer, scope: Scope) -> str:
    """Return the key under which a failure of `offer` with that reach is remembered.

    A place the provider does not have (a region without zones) widens to the next larger one.
    """
    if scope is Scope.POOL:
        return offer.offer_id
    if scope is Scope.ZONE and offer.zone:
        return f"zone:{offer.provider}/{offer.region}/{offer.zone}"
    if scope is not Scope.ACCOUNT and offer.region:
        return f"region:{offer.provider}/{offer.region}"
    return f"account:{offer.provider}"


def scope_keys(offer: Offer) -> tuple[str, ...]:
    """Return every key that covers an offer, the narrowest first, each once."""
    return tuple(dict.fromkeys(scope_key(offer, scope) for scope in Scope))


def scope_of(key: str) -> str:
    """Return how far the failure under a key reaches: `offer`, `zone`, `region` or `account`."""
    word, colon, _ = key.partition(":")
    return word if colon and word in ("zone", "region", "account") else "offer"
