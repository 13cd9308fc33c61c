"""What can be rented, from the configuration alone: Google does not say what is in stock."""

from __future__ import annotations

from hybrid.core.models import Market, Offer
from providers.gcp.params import Pool

MOST_TOGETHER = 32
"""Instances of one gang. Google makes 5,000 at once; their start-up script has to hold a line for
each of them, and stays under `userdata.LIMIT_BYTES` with room for long labels."""


def offer_of(pool: Pool, provider: str) -> Offer:
    """Return a pool as an offer."""
    market = Market.SPOT if pool.use_spot else Market.ON_DEMAND
    parts = (provider, pool.region, pool.zone, pool.instance_type, market.value)
    return Offer(
        offer_id="/".join(parts),
        provider=provider,
        region=pool.region,
        zone=pool.zone,
        instance_type=pool.instance_type,
        market=market,
        shape=_shape(pool),
        labels=pool.labels,
        accelerator=pool.gpus.accelerator if pool.gpus else "",
        gpu_count=pool.gpus.count if pool.gpus else 0,
        usd_per_hour=pool.usd_per_hour,
        max_count=pool.max_nodes,
        max_gang=MOST_TOGETHER,
        boot_s=pool.boot_time,
        rank=pool.rank,
    )


def _shape(pool: Pool) -> dict[str, float]:
    shape: dict[str, float] = {"CPU": pool.cpus, "memory": pool.memory}
    if pool.gpus:
        shape["GPU"] = pool.gpus.count
        if pool.gpus.accelerator:
            # As Ray does on a machine with such GPUs: tasks ask for a share of it.
            shape[f"accelerator_type:{pool.gpus.accelerator}"] = 1
    return shape
