"""What may be rented right now, and what forbids the rest: stock, failures, caps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hybrid.core.labels import admits_any
from hybrid.core.models import (
    Caps,
    Commitment,
    Demand,
    Instance,
    InstanceState,
    Labels,
    Offer,
    Selector,
)
from hybrid.core.policy.memory import Memory
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Snapshot
from hybrid.core.policy.room import Axis, Vector, covers
from hybrid.core.policy.words import number

_ON_ITS_WAY = (InstanceState.REQUESTED, InstanceState.BOOTING)

# A hair of tolerance: 0.1 + 0.2 must fit under 0.3.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Refusal:
    """Why an offer, or one more instance of it, cannot be had.

    Attributes:
        code: Stable word; the most useful one to show is the largest `weight`.
        weight: How near to a launch it came; higher is nearer.
    """

    code: str
    message: str
    weight: int


@dataclass(frozen=True)
class Limit:
    """How many more instances of an offer may be launched, and what says so.

    Attributes:
        is_whole: Nothing has been taken of it yet.
    """

    count: float
    refusal: Refusal
    is_whole: bool = False


@dataclass
class Market:
    """Offers, with what is left of each while a plan is being made.

    Attributes:
        offers: All of them, in order of preference.
        limits: What each may give at the start of the plan, by offer id.
        waves: The same for offers of which no node has joined yet. A gang is one launch here too:
            it comes whole when nothing else of its offer is on its way.
        memory: What failed. Offers that rest no more may be tried by one launch. A gang is one
            launch, however many instances it takes, or it could never be the first to try.
        labels: What each offer's nodes will carry, by offer id.
        sizes: What each offer's empty node has, on `axis`, by offer id.
        taken: How many of each this plan launches, by offer id.
    """

    offers: tuple[Offer, ...]
    limits: dict[str, Limit]
    memory: Memory
    axis: Axis
    labels: dict[str, Labels]
    sizes: dict[str, Vector]
    wallet: Wallet
    waves: dict[str, Limit] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    _admitting: dict[tuple[Selector, ...], frozenset[str]] = field(default_factory=dict)
    _why_not: dict[str, Refusal | None] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, params: PolicyParams, axis: Axis) -> Market:
        """Return the market as a snapshot shows it, for work on `axis`."""
        offers = sorted(
            snapshot.offers, key=lambda o: (o.rank, o.usd_per_hour, o.instance_type, o.offer_id)
        )
        rented = Counter(instance.offer.offer_id for instance in snapshot.instances)
        coming = [i for i in snapshot.instances if is_coming(i, now_s=snapshot.now_s)]
        memory = Memory.of(offers, snapshot.failures, coming)
        return cls(
            offers=tuple(offers),
            limits={o.offer_id: _limit(o, rented[o.offer_id], memory, snapshot) for o in offers},
            memory=memory,
            axis=axis,
            labels={offer.offer_id: rented_labels(offer) for offer in offers},
            sizes={offer.offer_id: axis.vector(offer.shape) for offer in offers},
            wallet=Wallet.of(snapshot, params),
            waves=_first_waves(offers, snapshot, params),
        )

    def holding(self, *demands: Demand) -> Iterator[Offer]:
        """Yield offers whose empty node could hold one of each request, sold out or not.

        Of each alone: two of them need not fit on one node.
        """
        needs = [self.axis.vector(demand.shape) for demand in demands]
        # Each of them fits if the largest amount of each resource does.
        need = tuple(map(max, zip(*needs, strict=True)))
        admitted = [self._admitted(demand.selectors) for demand in demands]
        for offer in self.offers:
            name = offer.offer_id
            if covers(self.sizes[name], need) and all(name in ids for ids in admitted):
                yield offer

    def room_for(self, offer: Offer, count: int, *, is_gang: bool = False) -> int:
        """Return how many of `count` more instances stock, failures and caps allow."""
        left = self._left(offer, is_gang=is_gang)
        return max(0, math.floor(min(count, left, self.wallet.affords(offer))))

    def refusal(self, offer: Offer, count: int = 1) -> Refusal:
        """Return why `count` more instances of the offer cannot be had, the whole of them."""
        if self._left(offer, is_gang=True) >= count:
            return self.wallet.refusal(offer, count)
        limit = self._tightest(offer, is_gang=True)
        taken = self.taken.get(offer.offer_id, 0)
        if self._probes(offer):
            return _probing(self.memory.key_of(offer.offer_id))
        words = limit.refusal.message
        words += f"; this plan takes {taken}" if taken else ""
        words += f"; {count} are needed at once" if count > 1 else ""
        return Refusal(limit.refusal.code, words, limit.refusal.weight)

    def why_not_one(self, offer: Offer) -> Refusal | None:
        """Return why no more instance of the offer can be had; `None` when one can."""
        # Hundreds of kinds of work ask for the same few offers.
        name = offer.offer_id
        if name not in self._why_not:
            self._why_not[name] = None if self.room_for(offer, 1) else self.refusal(offer)
        return self._why_not[name]

    def could_ever(self, offer: Offer, count: int) -> bool:
        """Return whether `count` instances could be had if nothing else were rented or spent."""
        is_within = offer.max_count is None or count <= offer.max_count
        return is_within and self.wallet.could_ever(offer, count)

    def take(self, offer: Offer, count: int) -> None:
        """Count `count` launches of the offer."""
        self._why_not.clear()
        self.taken[offer.offer_id] = self.taken.get(offer.offer_id, 0) + count
        self.wallet.take(offer, count)

    def copy(self) -> Market:
        """Return a market on which launches can be tried."""
        return replace(self, wallet=replace(self.wallet), taken=dict(self.taken), _why_not={})

    def _admitted(self, selectors: tuple[Selector, ...]) -> frozenset[str]:
        """Return the offers whose nodes the selectors admit."""
        if selectors not in self._admitting:
            ids = (name for name, labels in self.labels.items() if admits_any(selectors, labels))
            self._admitting[selectors] = frozenset(ids)
        return self._admitting[selectors]

    def _left(self, offer: Offer, *, is_gang: bool) -> float:
        taken = self.taken.get(offer.offer_id, 0)
        left = self._tightest(offer, is_gang=is_gang).count - taken
        if offer.offer_id not in self.memory.by_offer:
            return left
        if self._probes(offer):
            return 0
        return left if is_gang else min(left, 1)

    def _tightest(self, offer: Offer, *, is_gang: bool) -> Limit:
        """Return what holds the offer back most."""
        limit, wave = self.limits[offer.offer_id], self.waves.get(offer.offer_id)
        if wave is None or (is_gang and wave.is_whole and not self.taken.get(offer.offer_id)):
            return limit
        return min(limit, wave, key=lambda one: one.count)

    def _probes(self, offer: Offer) -> bool:
        """Return whether this plan already tries what the offer's failure reaches."""
        key = self.memory.key_of(offer.offer_id)
        return bool(key) and any(
            count and self.memory.key_of(name) == key for name, count in self.taken.items()
        )


@dataclass
class Wallet:
    """What the caps still allow, launches of this plan included.

    A launch must leave room for its own minimum life and way out inside the day and month
    caps, or it would be drained as soon as it came.
    """

    caps: Caps
    used: Commitment
    launch_s: float
    _taken: Commitment = field(default_factory=Commitment)

    @classmethod
    def of(cls, snapshot: Snapshot, params: PolicyParams) -> Wallet:
        """Return the wallet of a snapshot."""
        return cls(snapshot.caps, snapshot.commitment, params.min_life_s + params.exit_s)

    def affords(self, offer: Offer) -> float:
        """Return how many more instances of the offer fit under every cap."""
        rows = self._rows(offer)
        return min((_times(cap - now, each) for _, cap, now, each in rows), default=math.inf)

    def refusal(self, offer: Offer, count: int = 1) -> Refusal:
        """Return the cap that forbids `count` more instances of the offer."""
        what = f"one more {offer.offer_id}" if count == 1 else f"{count} more {offer.offer_id}"
        for name, cap, now, each in self._rows(offer):
            if _times(cap - now, each) < count:
                message = (
                    f"budget.{name} is {number(cap)}, {number(now)} of it is taken or promised, "
                    f"and {what} needs {number(each * count)}"
                )
                return Refusal(f"cap_{name}", message, 3)
        raise ValueError(f"no cap forbids {what}")

    def could_ever(self, offer: Offer, count: int) -> bool:
        """Return whether the caps would allow `count` instances if nothing were used."""
        return all(_times(cap, each) >= count for _, cap, _, each in self._rows(offer))

    def take(self, offer: Offer, count: int) -> None:
        """Count launches."""
        taken = self._taken
        self._taken = taken.model_copy(
            update={
                "node_count": taken.node_count + count,
                "gpu_count": taken.gpu_count + count * offer.gpu_count,
                "usd_per_hour": taken.usd_per_hour + count * offer.usd_per_hour,
                "day_exit_usd": taken.day_exit_usd + count * self._launch_usd(offer),
            }
        )

    def _launch_usd(self, offer: Offer) -> float:
        return offer.usd_per_hour * self.launch_s / 3600

    def _rows(self, offer: Offer) -> Iterator[tuple[str, float, float, float]]:
        """Yield (name in the configuration, cap, taken, what one instance takes)."""
        caps, used, taken = self.caps, self.used, self._taken
        promised_usd = used.day_exit_usd + taken.day_exit_usd
        launch_usd = self._launch_usd(offer)
        nodes = used.node_count + taken.node_count
        gpus = used.gpu_count + taken.gpu_count
        usd_per_hour = used.usd_per_hour + taken.usd_per_hour
        rows: Sequence[tuple[str, float | None, float, float]] = (
            ("nodes", caps.node_count, nodes, 1),
            ("gpus", caps.gpu_count, gpus, offer.gpu_count),
            ("usd_per_hour", caps.usd_per_hour, usd_per_hour, offer.usd_per_hour),
            ("usd_per_day", caps.usd_per_day, used.day_usd + promised_usd, launch_usd),
            ("usd_per_month", caps.usd_per_month, used.month_usd + promised_usd, launch_usd),
        )
        for name, cap, now, each in rows:
            if cap is not None:
                yield name, cap, now, each


def rented_labels(offer: Offer) -> Labels:
    """Return the labels every node of the offer will carry."""
    return {
        "site": "cloud",
        "provider": offer.provider,
        "market": offer.market.value,
        "instance-type": offer.instance_type,
        **({"region": offer.region} if offer.region else {}),
        **({"zone": offer.zone} if offer.zone else {}),
        **({"accelerator": offer.accelerator} if offer.accelerator else {}),
        **offer.labels,
    }


def is_coming(instance: Instance, *, now_s: float) -> bool:
    """Return whether an instance without a node yet can be counted on to bring one."""
    is_late = instance.deadline_at_s is not None and instance.deadline_at_s <= now_s
    is_booting = instance.state in (InstanceState.REQUESTED, InstanceState.BOOTING)
    return is_booting and not is_late and not instance.quarantine


def _times(room: float, each: float) -> float:
    """Return how often `each` fits; a cap that is passed already lets nothing through."""
    if each:
        return (room + _ROUNDING) / each
    return math.inf if room >= -_ROUNDING else 0.0


def _probing(key: str) -> Refusal:
    message = f"{key} failed before, so one launch tries it first"
    return Refusal("probing", message, 2)


def _first_waves(
    offers: Sequence[Offer], snapshot: Snapshot, params: PolicyParams
) -> dict[str, Limit]:
    """Return how many more may come of each offer of which no node has ever joined."""
    joined = {i.offer.offer_id for i in snapshot.instances if i.joined_at_s is not None}
    joined |= snapshot.boot_s_by_offer.keys()
    coming = Counter(i.offer.offer_id for i in snapshot.instances if i.state in _ON_ITS_WAY)
    waves = {}
    for name in (offer.offer_id for offer in offers if offer.offer_id not in joined):
        message = (
            f"no node of {name} has joined yet, so at most {params.first_wave_count} come at "
            f"once (burst.first_wave), with {coming[name]} on the way"
        )
        left = max(0, params.first_wave_count - coming[name])
        waves[name] = Limit(left, Refusal("first_wave", message, 2), is_whole=not coming[name])
    return waves


def _limit(offer: Offer, rented_count: int, memory: Memory, snapshot: Snapshot) -> Limit:
    """Return how many more of an offer may be launched, and what says so."""
    for source in snapshot.blind:
        if source.name == f"provider:{offer.provider}":
            message = f"{offer.provider} does not answer: {source.problem}"
            return Limit(0, Refusal("provider_blind", message, 2))
    failure = memory.by_offer.get(offer.offer_id)
    if failure is not None and failure.until_s > snapshot.now_s:
        wait_s = failure.until_s - snapshot.now_s
        message = f"{failure.key} failed ({failure.message}); tried again in {wait_s:.0f} s"
        return Limit(0, Refusal("backed_off", message, 2))
    if failure is not None and failure.key in memory.probed:
        return Limit(0, _probing(failure.key))
    limits = []
    if offer.stock_count is not None:
        words = f"has {offer.stock_count} in stock" if offer.stock_count else "is sold out"
        limits.append(Limit(offer.stock_count, Refusal("sold_out", f"{offer.offer_id} {words}", 2)))
    if offer.max_count is not None:
        message = f"max_nodes of {offer.offer_id} is {offer.max_count}, with {rented_count} rented"
        left = max(0, offer.max_count - rented_count)
        limits.append(Limit(left, Refusal("max_nodes", message, 3)))
    unlimited = Limit(math.inf, Refusal("", "", 0))
    return min(limits, key=lambda limit: limit.count, default=unlimited)
