"""What became of each pool: an offer, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid.core.catalog import Terms
from hybrid.core.errors import AuthError, ProviderError
from hybrid.core.models import Offer, Reason
from hybrid.core.models.withheld import Offered, Withheld
from hybrid.core.ports import ProviderContext
from providers.aws import offers
from providers.aws.machines import Knowledge
from providers.aws.market import SpotPrices, Types
from providers.aws.params import Params, Pool

_YOURS = "or write usd_per_hour"


class Shelf:
    """The pools of one account, with the market's prices where the configuration has none."""

    def __init__(
        self,
        name: str,
        params: Params,
        context: ProviderContext,
        *,
        types: Types,
        prices: SpotPrices,
    ) -> None:
        self._name = name
        self._params = params
        self._context = context
        self._types = types
        self._prices = prices

    def online(self) -> Sequence[Offered]:
        """Return what became of each pool, region by region; AWS is asked.

        Raises:
            ProviderError: No pool could be judged.
        """
        found: list[Offered] = []
        first: ProviderError | None = None
        pools = self._params.pools
        for region in sorted({pool.region for pool in pools}):
            there = [pool for pool in pools if pool.region == region]
            try:
                found += self._offers_of(region, there)
            except AuthError:
                raise
            except ProviderError as error:
                # A region in trouble costs its own offers, not those of the others.
                first = first or error
                words = f"what {region} offers could not be read: {error}"
                found += [self._withheld(pool, "unreadable", words) for pool in there]
        if first is not None and not any(isinstance(item, Offer) for item in found):
            raise first
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
        if pool.usd_per_hour is None:
            words = (
                "it costs what the spot market says, and only a running controller asks AWS for "
                f"that; start one, {_YOURS}"
            )
            return self._withheld(pool, "no_price", words)
        return offers.offer(pool, self._name, facts=None, usd_per_hour=pool.usd_per_hour)

    def _offers_of(self, region: str, pools: Sequence[Pool]) -> Iterator[Offered]:
        vague = {pool.instance_type for pool in pools if offers.needs_facts(pool)}
        facts = self._types.of(region, vague)
        spot = {pool.instance_type for pool in pools if offers.needs_price(pool)}
        if spot:
            self._prices.refresh(region, spot)
        for pool in pools:
            price = pool.usd_per_hour or self._market_usd_per_hour(pool)
            if isinstance(price, Withheld):
                yield price
            else:
                known = facts.get(pool.instance_type)
                yield offers.offer(pool, self._name, facts=known, usd_per_hour=price)

    def _market_usd_per_hour(self, pool: Pool) -> float | Withheld:
        """Return the price of the spot market, or why the pool is not to be bought at it."""
        zones = [pool.zone] if pool.zone else sorted(self._params.region(pool).subnets)
        prices = self._prices.usd_per_hour(pool.region, pool.instance_type)
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
        on_demand = self._on_demand_usd_per_hour(pool)
        if on_demand is not None and price > on_demand:
            words = f"the spot price, ${price:g}/h, is above on-demand, ${on_demand:g}/h"
            return self._withheld(pool, "spot_above_on_demand", words)
        return price

    def _withheld(self, pool: Pool, code: str, words: str) -> Withheld:
        limits = (pool.spot_limit_usd_per_hour, self._on_demand_usd_per_hour(pool))
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

    def _on_demand_usd_per_hour(self, pool: Pool) -> float | None:
        knowledge = Knowledge(self._context.catalog, Terms(now_s=self._context.clock.now_s()))
        return knowledge.on_demand_usd_per_hour(pool.infra, pool.instance_type)
