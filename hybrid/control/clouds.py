"""What the clouds said last: offers and instances by provider, and which are blind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hybrid.control.together import Together, in_turn
from hybrid.core.errors import ProviderError
from hybrid.core.models import CloudInstance, CloudState, Instance, Offer
from hybrid.core.models.withheld import Offered, Withheld
from hybrid.core.policy.plan import Source
from hybrid.core.ports import Clock, Provider
from hybrid.core.ports.pools import offered_by


@dataclass(frozen=True)
class _Seen:
    """What one provider said; `offers` is `None` when it was not asked for them."""

    listed: tuple[CloudInstance, ...] | ProviderError
    offers: tuple[Offered, ...] | ProviderError | None = None


@dataclass(frozen=True)
class _Look:
    """One look at one provider, in a thread of its own."""

    provider: Provider
    with_offers: bool

    def ask(self) -> _Seen:
        return _Seen(self._list(), self._offers() if self.with_offers else None)

    def _list(self) -> tuple[CloudInstance, ...] | ProviderError:
        try:
            return tuple(self.provider.list_instances())
        except ProviderError as error:
            return error

    def _offers(self) -> tuple[Offered, ...] | ProviderError:
        try:
            return tuple(offered_by(self.provider))
        except ProviderError as error:
            return error


@dataclass
class Clouds:
    """All providers, looked at once a tick. One in trouble costs its own offers only.

    Attributes:
        together: Makes the calls of a tick.
    """

    providers: Sequence[Provider]
    clock: Clock
    offers_every_s: float = 60.0
    together: Together = in_turn
    listed: dict[str, tuple[CloudInstance, ...]] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    _offers: dict[str, tuple[Offer, ...]] = field(default_factory=dict)
    _withheld: dict[str, tuple[Withheld, ...]] = field(default_factory=dict)
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
        now_s = self.clock.monotonic_s()
        looks = [_Look(p, self._are_offers_old(p.name, now_s)) for p in self.providers]
        for number, seen in self.together([look.ask for look in looks]):
            name = looks[number].provider.name
            if seen.offers is not None:
                self._offers_at_s[name] = now_s
                self._take_offers(name, seen.offers)
            if isinstance(seen.listed, ProviderError):
                self._set_blind(name, seen.listed)
                continue
            self.listed[name] = seen.listed
            self.sources[name] = Source(
                name=f"provider:{name}",
                is_up=True,
                seen_at_s=self.clock.now_s(),
                problem=self._offer_problems.get(name, ""),
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

    def withheld(self) -> tuple[Withheld, ...]:
        """Return the pools that were no offer when they were last read, and why."""
        return tuple(pool for pools in list(self._withheld.values()) for pool in pools)

    def blind(self) -> tuple[Source, ...]:
        """Return the sources that could not be read in this tick."""
        return tuple(source for source in self.sources.values() if not source.is_up)

    def unread(self) -> tuple[Source, ...]:
        """Return the providers whose offers were never read: what they have is unknown."""
        return tuple(
            Source(
                name=f"provider:{provider.name}",
                is_up=False,
                problem=self._offer_problems.get(provider.name, "not asked yet"),
            )
            for provider in self.providers
            if provider.name not in self._offers
        )

    def stranded(self, instances: Iterable[Instance]) -> tuple[Source, ...]:
        """Return a blind source for each provider that has live instances and no adapter here."""
        counts = Counter(i.offer.provider for i in instances)
        for provider in self.providers:
            counts.pop(provider.name, None)
        return tuple(
            Source(name=f"provider:{name}", is_up=False, problem=_stranded(count))
            for name, count in sorted(counts.items())
        )

    def _index(self, name: str) -> dict[str, list[CloudInstance]]:
        """Return a provider's list by our ids; made once a look, for a thousand questions."""
        if name not in self._by_id:
            index: dict[str, list[CloudInstance]] = {}
            for entry in self.listed.get(name, ()):
                index.setdefault(entry.instance_id, []).append(entry)
            self._by_id[name] = index
        return self._by_id[name]

    def _are_offers_old(self, name: str, now_s: float) -> bool:
        read_at_s = self._offers_at_s.get(name)
        return read_at_s is None or now_s - read_at_s >= self.offers_every_s

    def _take_offers(self, name: str, answer: tuple[Offered, ...] | ProviderError) -> None:
        """Keep new offers. A failure leaves the last in force and blinds nobody."""
        if isinstance(answer, ProviderError):
            self._offer_problems[name] = f"its offers could not be read: {answer}"
        else:
            self._offers[name] = tuple(item for item in answer if isinstance(item, Offer))
            self._withheld[name] = tuple(i for i in answer if isinstance(i, Withheld))
            self._offer_problems.pop(name, None)

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


def _stranded(count: int) -> str:
    rented = "1 instance of it is" if count == 1 else f"{count} instances of it are"
    return (
        f"{rented} still rented, and it is not in the configuration any more; put its entries "
        f"back under 'clouds'"
    )
