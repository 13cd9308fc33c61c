"""What a provider can say of its pools beyond its offers. Both are optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from hybrid.core.models.withheld import Offered
from hybrid.core.ports.clouds import Provider


@runtime_checkable
class OfflineProvider(Protocol):
    """A provider that can say what it offers without a call."""

    def offline_offers(self) -> Sequence[Offered]:
        """Return what became of each pool, in their order, by configuration and catalog alone.

        No network, no credentials, and nothing is written.
        """
        ...


@runtime_checkable
class CandidProvider(Protocol):
    """A provider that leaves pools out of its offers and says why."""

    def pool_offers(self) -> Sequence[Offered]:
        """Return what `Provider.offers` returns, and the pools that it leaves out.

        Raises:
            ProviderError: Nothing could be read; the last answer stays in force.
        """
        ...


def offered_by(provider: Provider) -> Sequence[Offered]:
    """Return a provider's offers and, if it says so, what it leaves out. Raises `ProviderError`."""
    return provider.pool_offers() if isinstance(provider, CandidProvider) else provider.offers()
