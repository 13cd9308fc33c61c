"""Offers that failed are left alone for a while, longer each time."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hybrid.control.book import Book
from hybrid.control.params import ControlParams
from hybrid.core.backoff import backoff_s
from hybrid.core.errors import ProviderError, Scope
from hybrid.core.models import Offer, OfferFailure
from hybrid.core.ports import Clock
from hybrid.core.scopes import scope_key


@dataclass(frozen=True)
class Resting:
    """Writes down what failed, for all later plans and for the next controller."""

    book: Book
    clock: Clock
    params: ControlParams
    rng: random.Random

    def failed(self, offer: Offer, error: ProviderError | str) -> None:
        """Leave an offer, or all that the failure reaches, alone for a while.

        What fails while the offer rests already was started before: it is the same trouble.
        """
        if self.book.is_resting(offer):
            return
        scope = error.scope if isinstance(error, ProviderError) else Scope.POOL
        key = scope_key(offer, scope)
        before = self.book.failure(key)
        count = before.failure_count + 1 if before else 1
        delay_s = backoff_s(
            count,
            base_s=self.params.backoff_base_s,
            cap_s=self.params.backoff_cap_s,
            jitter=self.rng.random(),
        )
        failure = OfferFailure(
            key=key,
            failure_count=count,
            until_s=self.clock.now_s() + delay_s,
            error=type(error).__name__ if isinstance(error, ProviderError) else "JoinError",
            message=str(error),
        )
        self.book.save_failure(failure)
        self.book.record(
            "offer_failed",
            key,
            failure.message,
            offer_id=offer.offer_id,
            failure_count=count,
            rest_s=round(delay_s, 1),
        )
