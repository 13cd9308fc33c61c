"""A pool that is no offer now, and why."""

from __future__ import annotations

from typing import TypeAlias

from hybrid.core.models.base import Model
from hybrid.core.models.instances import Reason
from hybrid.core.models.offers import Market, Offer


class Withheld(Model):
    """A pool that cannot be rented from as things are: nobody knows its price, for example.

    Attributes:
        offer_id: What the offer would be called; see `Offer`.
        accelerator: As in `Offer`.
        gpu_count: GPUs of one instance; `None` when nobody says.
        at_most_usd_per_hour: What one instance costs at most, where that is known.
        reason: Why there is no offer, and what to do about it.
    """

    offer_id: str
    provider: str
    instance_type: str
    market: Market
    accelerator: str = ""
    gpu_count: int | None = None
    at_most_usd_per_hour: float | None = None
    reason: Reason


Offered: TypeAlias = Offer | Withheld
"""What became of a pool."""
