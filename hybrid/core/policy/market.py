"""What may be rented right now, and what forbids the rest: stock, failures, caps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from hybrid.core.labels import admits_any
from hybrid.core.models import Caps, Commitment, Demand, Labels, Offer
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Snapshot
from hybrid.core.policy.room import fits


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


@dataclass
class Market:
    """Offers, with what is left of each while a plan is being made.

    Attributes:
        offers: All of them, in order of preference.
        left: How many more of each may be launched, by offer id.
        refusals: Why none may, by offer id, for those with nothing left.
    """

    offers: tuple[Offer, ...]
    left: dict[str, float]
    refusals: dict[str, Refusal]
    wallet: Wallet

    @classmethod
    def of(cls, snapshot: Snapshot, params: PolicyParams) -> Market:
        """Return the market as a snapshot shows it."""
        live: dict[str, int] = {}
        for instance in snapshot.instances:
            live[instance.offer.offer_id] = live.get(instance.offer.offer_id, 0) + 1
        left: dict[str, float] = {}
        refusals: dict[str, Refusal] = {}
        for offer in snapshot.offers:
            count, refusal = _left(offer, snapshot, live.get(offer.offer_id, 0))
            left[offer.offer_id] = count
            if refusal:
                refusals[offer.offer_id] = refusal
        offers = sorted(
            snapshot.offers, key=lambda o: (o.rank, o.usd_per_hour, o.instance_type, o.offer_id)
        )
        return cls(tuple(offers), left, refusals, Wallet.of(snapshot, params))

    def holding(self, demand: Demand) -> Iterator[Offer]:
        """Yield offers whose empty node could hold one such request, sold out or not."""
        for offer in self.offers:
            if fits(demand.shape, offer.shape) and admits_any(
                demand.selectors, rented_labels(offer)
            ):
                yield offer

    def room_for(self, offer: Offer, count: int) -> int:
        """Return how many of `count` more instances stock and caps allow."""
        allowed = min(count, self.left[offer.offer_id], self.wallet.affords(offer))
        return max(0, math.floor(allowed))

    def refusal(self, offer: Offer) -> Refusal:
        """Return why one more instance of the offer cannot be had."""
        if self.left[offer.offer_id] < 1:
            return self.refusals.get(
                offer.offer_id,
                Refusal("sold_out", f"{offer.offer_id} has no stock left", 2),
            )
        return self.wallet.refusal(offer)

    def take(self, offer: Offer, count: int) -> None:
        """Count `count` launches of the offer."""
        self.left[offer.offer_id] -= count
        self.wallet.take(offer, count)


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
        return min((count for count, _ in self._limits(offer)), default=math.inf)

    def refusal(self, offer: Offer) -> Refusal:
        """Return the cap that forbids one more instance of the offer."""
        for count, refusal in self._limits(offer):
            if count < 1:
                return refusal
        return Refusal("launching", "as many as the caps allow are being launched", 1)

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

    def _limits(self, offer: Offer) -> Iterator[tuple[float, Refusal]]:
        used, taken = self.used, self._taken
        promised_usd = used.day_exit_usd + taken.day_exit_usd
        launch_usd = self._launch_usd(offer)
        rows = (
            ("nodes", self.caps.node_count, used.node_count + taken.node_count, 1.0),
            ("gpus", self.caps.gpu_count, used.gpu_count + taken.gpu_count, offer.gpu_count),
            (
                "usd_per_hour",
                self.caps.usd_per_hour,
                used.usd_per_hour + taken.usd_per_hour,
                offer.usd_per_hour,
            ),
            ("usd_per_day", self.caps.usd_per_day, used.day_usd + promised_usd, launch_usd),
            ("usd_per_month", self.caps.usd_per_month, used.month_usd + promised_usd, launch_usd),
        )
        for name, cap, now, each in rows:
            if cap is None or not each:
                continue
            message = (
                f"one more {offer.offer_id} needs {each:.2f} under budget.{name}, "
                f"where {now:.2f} of {cap:.2f} are taken"
            )
            # A hair of tolerance: 0.1 + 0.2 must fit under 0.3.
            yield (cap - now + 1e-9) / each, Refusal(f"cap_{name}", message, 3)


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


def _left(offer: Offer, snapshot: Snapshot, live: int) -> tuple[float, Refusal | None]:
    """Return how many more of an offer may be launched, and why none may."""
    blind = {source.name: source for source in snapshot.blind}
    source = blind.get(f"provider:{offer.provider}")
    if source is not None:
        message = f"{offer.provider} does not answer: {source.problem}"
        return 0, Refusal("provider_blind", message, 2)
    failure = next((f for f in snapshot.failures if f.offer_id == offer.offer_id), None)
    if failure is not None and failure.until_s > snapshot.now_s:
        wait_s = failure.until_s - snapshot.now_s
        message = f"{offer.offer_id} failed ({failure.message}); tried again in {wait_s:.0f} s"
        return 0, Refusal("backed_off", message, 2)
    left: float = math.inf
    refusal = None
    if offer.stock_count is not None and offer.stock_count < left:
        left = offer.stock_count
        refusal = Refusal("sold_out", f"{offer.offer_id} is sold out", 2)
    if offer.max_count is not None and offer.max_count - live < left:
        left = max(0, offer.max_count - live)
        message = f"max_nodes of {offer.offer_id} is {offer.max_count}, and {live} are rented"
        refusal = Refusal("max_nodes", message, 3)
    if failure is not None:
        # Half open: one probe, until a success clears the record.
        probing = any(i.offer.offer_id == offer.offer_id for i in snapshot.instances)
        left = min(left, 0 if probing else 1)
        refusal = refusal or Refusal("probing", f"{offer.offer_id} is being probed", 2)
    return left, refusal if left < 1 else None
