"""What the clouds said last: offers and instances by provider, and which are blind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hybrid.core.errors import ProviderError
from hybrid.core.models import CloudInstance, CloudState, Instance, Offer
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
    _offer_problems: dict[str, str] = field(default_factory=dict)
    _by_id: dict[str, dict[str, list[CloudInstance]]] = field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, Provider]:
        """Return providers by name."""
        return {provider.name: provider for provider in self.providers}

    def look(self) -> None:
        """Read every provider's list, and its offers when they are old."""
        self.listed = {}
        self._by_id = {}
        for provider in self.providers:
            try:
                self.listed[provider.name] = tuple(provider.list_instances())
            except ProviderError as error:
                self._set_blind(provider.name, error)
                continue
            self.sources[provider.name] = Source(
                name=f"provider:{provider.name}",
                is_up=True,
                seen_at_s=self.clock.now_s(),
                problem=self._refresh_offers(provider),
            )

    def is_listed(self, name: str) -> bool:
        """Return whether the provider's list was read in this tick."""
        return name in self.listed

    def find(self, name: str, instance_id: str, *, provider_id: str = "") -> CloudInstance | None:
        """Return an instance's entry in its provider's list of this tick.

        When the cloud lists two machines for one of our ids, a living one is returned, so that
        it is not forgotten; of two living ones the one whose id we know.
        """
        entries = self._index(name).get(instance_id, ())
        return min(
            entries,
            key=lambda c: (c.state is CloudState.GONE, c.provider_id != provider_id, c.provider_id),
            default=None,
        )

    def offers(self) -> tuple[Offer, ...]:
        """Return the last known offers of all providers."""
        return tuple(offer for offers in self._offers.values() for offer in offers)

    def blind(self) -> tuple[Source, ...]:
        """Return the sources that could not be read in this tick."""
        return tuple(source for source in self.sources.values() if not source.is_up)

    def stranded(self, instances: Iterable[Instance]) -> tuple[Source, ...]:
        """Return a blind source for each provider that has live instances and no adapter here."""
        names = Counter(i.offer.provider for i in instances)
        for provider in self.providers:
            names.pop(provider.name, None)
        return tuple(
            Source(
                name=f"provider:{name}",
                is_up=False,
                problem=(
                    f"{count} instance{'' if count == 1 else 's'} of it are still rented, and it "
                    f"is not in the configuration any more; put its entries back under 'clouds'"
                ),
            )
            for name, count in sorted(names.items())
        )

    def _index(self, name: str) -> dict[str, list[CloudInstance]]:
        """Return a provider's list by our ids; made once a look, for a thousand questions."""
        if name not in self._by_id:
            index: dict[str, list[CloudInstance]] = {}
            for entry in self.listed.get(name, ()):
                index.setdefault(entry.instance_id, []).append(entry)
            self._by_id[name] = index
        return self._by_id[name]

    def _refresh_offers(self, provider: Provider) -> str:
        """Read the offers if they are old; return why that failed, or `""`.

        A failure leaves the last ones in force and blinds nobody: the machines are seen.
        """
        now_s = self.clock.monotonic_s()
        read_at_s = self._offers_at_s.get(provider.name)
        if read_at_s is not None and now_s - read_at_s < self.offers_every_s:
            return self._offer_problems.get(provider.name, "")
        self._offers_at_s[provider.name] = now_s
        try:
            self._offers[provider.name] = tuple(provider.offers())
        except ProviderError as error:
            self._offer_problems[provider.name] = f"its offers could not be read: {error}"
        else:
            self._offer_problems.pop(provider.name, None)
        return self._offer_problems.get(provider.name, "")

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
