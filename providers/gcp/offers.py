"""What can be rented, by configuration and catalog alone: Google does not say what is in stock."""

from __future__ import annotations

from hybrid.core.catalog import Price, Terms
from hybrid.core.models import Offer
from hybrid.core.models.withheld import Offered, Withheld
from hybrid.core.ports import ProviderContext
from hybrid.core.prices import of_pool
from providers.gcp.params import Pool

MOST_TOGETHER = 32
"""Instances of one gang. Google makes 5,000 at once; their start-up script has to hold a line for
each of them, and stays under `userdata.LIMIT_BYTES` with room for long labels."""


def offered(pool: Pool, provider: str, context: ProviderContext) -> Offered:
    """Return a pool as an offer, or why nobody knows its price now."""
    price = _price(pool, context)
    if price.reason is None:
        return offer_of(pool, provider, usd_per_hour=price.usd_per_hour or 0.0)
    return Withheld(
        offer_id=pool.offer_id(provider),
        provider=provider,
        instance_type=pool.instance_type,
        market=pool.market,
        accelerator=pool.gpus.accelerator if pool.gpus else "",
        gpu_count=pool.gpus.count if pool.gpus else 0,
        reason=price.reason,
    )


def offer_of(pool: Pool, provider: str, *, usd_per_hour: float) -> Offer:
    """Return a pool as an offer."""
    return Offer(
        offer_id=pool.offer_id(provider),
        provider=provider,
        region=pool.region,
        zone=pool.zone,
        instance_type=pool.instance_type,
        market=pool.market,
        shape=_shape(pool),
        labels=pool.labels,
        accelerator=pool.gpus.accelerator if pool.gpus else "",
        gpu_count=pool.gpus.count if pool.gpus else 0,
        usd_per_hour=usd_per_hour,
        max_count=pool.max_nodes,
        max_gang=MOST_TOGETHER,
        boot_s=pool.boot_time,
        rank=pool.rank,
    )


def _price(pool: Pool, context: ProviderContext) -> Price:
    """Return the configuration's price, else the catalog's, judged now: it grows old."""
    if pool.usd_per_hour is not None:
        return Price(usd_per_hour=pool.usd_per_hour)
    terms = Terms(now_s=context.clock.now_s(), rates=context.rates)
    provider = pool.infra.partition("/")[0]
    return of_pool(
        context.catalog.price(provider, pool.region, pool.instance_type, pool.market, terms)
    )


def _shape(pool: Pool) -> dict[str, float]:
    shape: dict[str, float] = {"CPU": pool.cpus, "memory": pool.memory}
    if pool.gpus:
        shape["GPU"] = pool.gpus.count
        if pool.gpus.accelerator:
            # As Ray does on a machine with such GPUs: tasks ask for a share of it.
            shape[f"accelerator_type:{pool.gpus.accelerator}"] = 1
    return shape
