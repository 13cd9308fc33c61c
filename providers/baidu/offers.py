"""What Baidu rents, as offers: from the pools alone, without a call.

Baidu has no public list of prices and its Python SDK no call for stock, so a pool says what it
costs, and a sold-out one is found out by trying.
"""

from __future__ import annotations

import math

from hybrid.core.models import Market, Offer
from providers.baidu.params import Exchange, Params, Pool

_MINUTES_PER_HOUR = 60
# The rest is the system's and Ray's object store, which takes 30 % by default.
_RAY_MEMORY_RATIO = 0.6
_BID_DECIMALS = 4


def offer_of(provider: str, pool: Pool, params: Params) -> Offer:
    """Return what a pool offers."""
    market = Market.SPOT if pool.use_spot else Market.ON_DEMAND
    place = (provider, pool.region, pool.zone, pool.instance_type, market)
    gpus = pool.gpus
    return Offer(
        offer_id="/".join(filter(None, place)),
        provider=provider,
        region=pool.region,
        zone=pool.zone,
        instance_type=pool.instance_type,
        market=market,
        shape=_shape(pool),
        labels=pool.labels,
        accelerator=gpus.accelerator if gpus else "",
        gpu_count=gpus.count if gpus else 0,
        usd_per_hour=_usd_per_hour(pool, params.exchange),
        max_count=pool.max_nodes,
        rank=pool.rank,
    )


def bid_cny_per_minute(pool: Pool, exchange: Exchange) -> str:
    """Return the most that a spot instance may cost, as Baidu reads it.

    The price of the offer, which the caps count, rounded down. Never the open bid `market`,
    whose price can rise above what was reserved.
    """
    cny_per_hour = pool.cny_per_hour or (pool.usd_per_hour or 0.0) * exchange.cny_per_usd
    steps = 10**_BID_DECIMALS
    # A hair more, so that 3.3 / 60 is 0.055 and not 0.0549.
    bid = math.floor(cny_per_hour / _MINUTES_PER_HOUR * steps + 1e-6) / steps
    return f"{bid:.{_BID_DECIMALS}f}"


def _usd_per_hour(pool: Pool, exchange: Exchange | None) -> float:
    if pool.cny_per_hour is None or exchange is None:
        return pool.usd_per_hour or 0.0
    return pool.cny_per_hour / exchange.cny_per_usd


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
