"""What became of each pool: an offer, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hybrid.core.catalog import Price
from hybrid.core.errors import InvalidRequestError, ProviderError
from hybrid.core.models import Market, Reason
from hybrid.core.models.withheld import Offered, Withheld
from providers.aws import offers
from providers.aws.market import SpotPrices, Types
from providers.aws.offers import Machine
from providers.aws.ondemand import OnDemand
from providers.aws.params import Params, Pool

_YOURS = "or write usd_per_hour"


class Shelf:
    """The pools of one account, with the market's prices where the configuration has none."""

    def __init__(
        self,
        name: str,
        params: Params,
        *,
        types: Types,
        spot: SpotPrices,
        on_demand: OnDemand,
    ) -> None:
        self._name = name
        self._params = params
        self._types = types
        self._spot = spot
        self._on_demand = on_demand

    def online(self) -> Sequence[Offered]:
        """Return what became of each pool, region by region; AWS is asked.

        Raises:
            ProviderError: No pool could be judged.
        """
        found: list[Offered] = []
        errors: list[ProviderError] = []
        pools = self._params.pools
        for region in sorted({pool.region for pool in pools}):
            there = [pool for pool in pools if pool.region == region]
            found += self._offers_of(region, there, errors)
        if errors and all(_is_unread(item) for item in found):
            raise errors[0]
        return found

    def offline(self) -> Sequence[Offered]:
        """Return what became of each pool, in their order, without a call."""
        return [self._offline_offer(pool) for pool in self._params.pools]

    def _offline_offer(self, pool: Pool) -> Offered:
        if pool.cpus is None:
            words = (
                f"what is inside {pool.instance_type} is not in the catalog; a running controller "
                "asks AWS, or write accelerators and cpus of the pool"
            )
            return self._withheld(pool, "not_in_catalog", words)
        price = pool.usd_per_hour or self._offline_usd_per_hour(pool)
        if isinstance(price, Withheld):
            return price
        return offers.offer(pool, self._name, facts=None, usd_per_hour=price)

    def _offline_usd_per_hour(self, pool: Pool) -> float | Withheld:
        if pool.use_spot:
            words = (
                "it costs what the spot market says, and only a running controller asks AWS for "
                f"that; start one, {_YOURS}"
            )
            return self._withheld(pool, "no_price", words)
        return self._usd_per_hour(pool, self._on_demand.offline_price(pool))

    def _offers_of(
        self, region: str, pools: Sequence[Pool], errors: list[ProviderError]
    ) -> Iterator[Offered]:
        """Yield what became of each pool; what cannot be read costs the pools that need it."""
        vague = {pool.instance_type for pool in pools if offers.needs_facts(pool)}
        facts, unknown = self._facts(region, vague)
        spot, listed = (
            {pool.instance_type for pool in pools if offers.is_unpriced(pool, market)}
            for market in (Market.SPOT, Market.ON_DEMAND)
        )
        unpriced = self._refreshed(region, spot) if spot else None
        self._on_demand.refresh(region, listed)
        errors += [*unknown.values(), *filter(None, [unpriced])]
        for pool in pools:
            price = pool.usd_per_hour or self._asked_usd_per_hour(pool)
            is_unread = (
                pool.use_spot and isinstance(price, Withheld) and price.reason.code == "no_price"
            )
            error = unpriced if is_unread else None
            if offers.needs_facts(pool):
                error = unknown.get(pool.instance_type) or error
            if error is not None:
                words = f"what {region} offers could not be read: {error}"
                yield self._withheld(pool, "unreadable", words)
            elif isinstance(price, Withheld):
                yield price
            else:
                known = facts.get(pool.instance_type)
                yield offers.offer(pool, self._name, facts=known, usd_per_hour=price)

    def _facts(
        self, region: str, names: Collection[str]
    ) -> tuple[dict[str, Machine], dict[str, ProviderError]]:
        """Return facts by type, and why there are none. One wrong name spoils no other."""
        try:
            return dict(self._types.of(region, names)), {}
        except InvalidRequestError as error:
            if len(names) == 1:
                return {}, dict.fromkeys(names, error)
        except ProviderError as error:
            return {}, dict.fromkeys(names, error)
        facts: dict[str, Machine] = {}
        unknown: dict[str, ProviderError] = {}
        for name in sorted(names):
            one, trouble = self._facts(region, [name])
            facts, unknown = facts | one, unknown | trouble
        return facts, unknown

    def _refreshed(self, region: str, types: Collection[str]) -> ProviderError | None:
        """Read spot prices anew; return why that failed. The last ones stand in for a while."""
        try:
            self._spot.refresh(region, types)
        except ProviderError as error:
            return error
        return None

    def _asked_usd_per_hour(self, pool: Pool) -> float | Withheld:
        if pool.use_spot:
            return self._market_usd_per_hour(pool)
        return self._usd_per_hour(pool, self._on_demand.price(pool))

    def _usd_per_hour(self, pool: Pool, judged: Price) -> float | Withheld:
        if judged.usd_per_hour is not None:
            return judged.usd_per_hour
        reason = judged.reason or Reason(code="no_price", message="no price known")
        return self._withheld(pool, reason.code, reason.message)

    def _market_usd_per_hour(self, pool: Pool) -> float | Withheld:
        """Return the price of the spot market, or why the pool is not to be bought at it."""
        zones = [pool.zone] if pool.zone else sorted(self._params.region(pool).subnets)
        prices = self._spot.usd_per_hour(pool.region, pool.instance_type)
        price = offers.spot_usd_per_hour(zones, prices)
        if not price > 0:
            words = (
                f"AWS told no spot price of the last hour for {pool.instance_type} in "
                f"{', '.join(zones)}; check that the type is sold there, {_YOURS}"
            )
            return self._withheld(pool, "no_price", words)
        limit = pool.spot_limit_usd_per_hour
        if limit is not None and price > limit:
            words = f"the spot price, ${price:g}/h, is above spot_limit_usd_per_hour, ${limit:g}/h"
            return self._withheld(pool, "spot_above_limit", words)
        # Never above on-demand, which is the safer buy and EC2's own limit.
        on_demand = self._on_demand.price(pool).usd_per_hour
        if on_demand is not None and price > on_demand:
            words = f"the spot price, ${price:g}/h, is above on-demand, ${on_demand:g}/h"
            return self._withheld(pool, "spot_above_on_demand", words)
        return price

    def _withheld(self, pool: Pool, code: str, words: str) -> Withheld:
        limits = (pool.spot_limit_usd_per_hour, self._on_demand.price(pool).usd_per_hour)
        known = [limit for limit in limits if limit is not None]
        return Withheld(
            offer_id=pool.offer_id(self._name),
            provider=self._name,
            instance_type=pool.instance_type,
            market=pool.market,
            accelerator=pool.gpus.accelerator if pool.gpus else "",
            gpu_count=pool.gpus.count if pool.gpus else None,
            at_most_usd_per_hour=pool.usd_per_hour or min(known, default=None),
            reason=Reason(code=code, message=words),
        )


def _is_unread(item: Offered) -> bool:
    return isinstance(item, Withheld) and item.reason.code == "unreadable"
