"""What the clouds said last: offers and instances by provider, and which are blind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hybrid.core.errors import ProviderError
from hybrid.core.models import CloudInstance, Offer
from hybrid.core.policy.plan import Source
from hybrid.core.ports import Clock, Provider


@dataclass
class Clouds:
    """All providers, looked at once a tick. One in trouble costs its own offers only."""

    providers: Sequence[Provider]
    clock: Clock
    offers_every_s: float = 60.0
    listed: dict[str, tuple[CloudInstance, ...]] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    _offers: dict[str, tuple[Offer, ...]] = field(default_factory=dict)
    _offers_at_s: dict[str, float] = field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, Provider]:
        """Return providers by name."""
        return {provider.name: provider for provider in self.providers}

    def look(self) -> None:
        """Read every provider's list, and its offers when they are old."""
        self.listed = {}
        for provider in self.providers:
            try:
                self.listed[provider.name] = tuple(provider.list_instances())
                self._refresh_offers(provider)
            except ProviderError as error:
                self._set_blind(provider.name, error)
            else:
                self.sources[provider.name] = Source(
                    name=f"provider:{provider.name}", is_up=True, seen_at_s=self.clock.now_s()
                )

    def is_listed(self, name: str) -> bool:
        """Return whether the provider's list was read in this tick."""
        return name in self.listed

    def find(self, name: str, instance_id: str) -> CloudInstance | None:
        """Return an instance's entry in its provider's list of this tick.

        When the cloud lists two machines for one of our ids, the living one is returned, so
        that it is not forgotten.
        """
        entries = [c for c in self.listed.get(name, ()) if c.instance_id == instance_id]
        return min(entries, key=lambda c: (c.state == "gone", c.provider_id), default=None)

    def offers(self) -> tuple[Offer, ...]:
        """Return the last known offers of all providers."""
        return tuple(offer for offers in self._offers.values() for offer in offers)

    def blind(self) -> tuple[Source, ...]:
        """Return the sources that could not be read in this tick."""
        return tuple(source for source in self.sources.values() if not source.is_up)

    def _refresh_offers(self, provider: Provider) -> None:
        now_s = self.clock.monotonic_s()
        read_at_s = self._offers_at_s.get(provider.name)
        if read_at_s is not None and now_s - read_at_s < self.offers_every_s:
            return
        self._offers[provider.name] = tuple(provider.offers())
        self._offers_at_s[provider.name] = now_s

    def forget_offers(self, name: str) -> None:
        """Read the provider's offers anew in the next tick, since its stock changed."""
        self._offers_at_s.pop(name, None)

    def _set_blind(self, name: str, error: ProviderError) -> None:
        before = self.sources.get(name)
        self.sources[name] = Source(
            name=f"provider:{name}",
            is_up=False,
            problem=str(error),
            seen_at_s=before.seen_at_s if before else None,
        )
