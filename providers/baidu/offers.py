"""What Baidu rents, as offers: from the pools alone, without a call.

Baidu has no public list of prices and its Python SDK no call for stock, so a pool says what it
costs, and a sold-out one is found out by trying.
"""

from __future__ import annotations

import math

from hybrid.core.catalog import Price, Terms
from hybrid.core.models import Offer
from hybrid.core.models.withheld import Offered, Withheld
from hybrid.core.ports import ProviderContext
from hybrid.core.prices import of_pool
from providers.baidu.params import Exchange, Params, Pool

_CNY = "CNY"
_MINUTES_PER_HOUR = 60
# The rest is the system's and Ray's object store, which takes 30 % by default.
_RAY_MEMORY_RATIO = 0.6
_BID_DECIMALS = 4


def offered(provider: str, pool: Pool, params: Params, context: ProviderContext) -> Offered:
    """Return a pool as an offer, or why nobody knows its price now."""
    price = _price(pool, params.exchange, context)
    if price.reason is None:
        return offer_of(provider, pool, usd_per_hour=price.usd_per_hour or 0.0)
    gpus = pool.gpus
    return Withheld(
        offer_id=pool.offer_id(provider),
        provider=provider,
        instance_type=pool.instance_type,
        market=pool.market,
        accelerator=gpus.accelerator if gpus else "",
        gpu_count=gpus.count if gpus else 0,
        reason=price.reason,
    )


def offer_of(provider: str, pool: Pool, *, usd_per_hour: float) -> Offer:
    """Return what a pool offers."""
    gpus = pool.gpus
    return Offer(
        offer_id=pool.offer_id(provider),
        provider=provider,
        region=pool.region,
        zone=pool.zone,
        instance_type=pool.instance_type,
        market=pool.market,
        shape=_shape(pool),
        labels=pool.labels,
        accelerator=gpus.accelerator if gpus else "",
        gpu_count=gpus.count if gpus else 0,
        usd_per_hour=usd_per_hour,
        max_count=pool.max_nodes,
        rank=pool.rank,
    )


def bid_cny_per_minute(pool: Pool, exchange: Exchange, *, usd_per_hour: float) -> str:
    """Return the most that a spot instance may cost, as Baidu reads it.

    The price of the offer, `usd_per_hour`, which the caps count, rounded down. Never the open
    bid `market`, whose price can rise above what was reserved.
    """
    cny_per_hour = pool.cny_per_hour or usd_per_hour * exchange.cny_per_usd
    steps = 10**_BID_DECIMALS
    # A hair more, so that 3.3 / 60 is 0.055 and not 0.0549.
    bid = math.floor(cny_per_hour / _MINUTES_PER_HOUR * steps + 1e-6) / steps
    return f"{bid:.{_BID_DECIMALS}f}"


def _price(pool: Pool, exchange: Exchange | None, context: ProviderContext) -> Price:
    """Return the configuration's price, else the catalog's, judged now: it grows old."""
    if pool.usd_per_hour is not None:
        return Price(usd_per_hour=pool.usd_per_hour)
    if pool.cny_per_hour is not None and exchange is not None:
        return Price(usd_per_hour=pool.cny_per_hour / exchange.cny_per_usd)
    own = {} if exchange is None else {_CNY: exchange.cny_per_usd}
    terms = Terms(now_s=context.clock.now_s(), rates={**context.rates, **own})
    provider = pool.infra.partition("/")[0]
    return of_pool(
        context.catalog.price(provider, pool.region, pool.instance_type, pool.market, terms),
        cause="Baidu publishes no list of prices",
        remedy="or cny_per_hour",
    )


def _shape(pool: Pool) -> dict[str, float]:
    named = pool.inside
    memory = pool.memory or int(named.memory_gib * 2**30 * _RAY_MEMORY_RATIO)
    shape: dict[str, float] = {"CPU": pool.cpus or named.cpu_count, "memory": memory}
    if pool.gpus:
        shape["GPU"] = pool.gpus.count
        if pool.gpus.accelerator:
            # As Ray does on a machine with such GPUs: tasks ask for a share of it.
            shape[f"accelerator_type:{pool.gpus.accelerator}"] = 1
    return shape
