"""From pools to offers: what one instance brings, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hybrid.core import gpu_names
from hybrid.core.models import Market, Model, Offer, Shape
from hybrid.core.quantity import GpuRequest
from providers.aws.machines import WORK_MEMORY_RATIO
from providers.aws.params import Pool


class Machine(Model):
    """What AWS says about an instance type."""

    vcpu_count: int
    memory_bytes: int
    gpu_name: str = ""
    gpu_count: int = 0


def machine(described: Mapping[str, Any]) -> Machine:
    """Return the facts of one item of DescribeInstanceTypes."""
    gpus = described.get("GpuInfo", {}).get("Gpus", [])
    return Machine(
        vcpu_count=described["VCpuInfo"]["DefaultVCpus"],
        memory_bytes=described["MemoryInfo"]["SizeInMiB"] * 2**20,
        gpu_name=gpu_names.ray_type(gpu_names.named(gpus[0].get("Name", ""))) if gpus else "",
        gpu_count=sum(gpu.get("Count", 0) for gpu in gpus),
    )


def needs_facts(pool: Pool) -> bool:
    """Return whether the configuration leaves out what AWS knows about a pool's type."""
    return pool.accelerators is None or pool.cpus is None or pool.memory is None


def is_unpriced(pool: Pool, market: Market) -> bool:
    """Return whether a pool is bought on a market, and the configuration has no price for it."""
    return pool.usd_per_hour is None and pool.market is market


def spot_usd_per_hour(zones: Iterable[str], prices: Mapping[str, float]) -> float:
    """Return the most that a spot instance costs now; 0 when nobody knows.

    Args:
        zones: Where it may land.
        prices: Price of its type, by zone.
    """
    return max((prices.get(zone, 0.0) for zone in zones), default=0.0)


def offer(pool: Pool, provider: str, *, facts: Machine | None, usd_per_hour: float) -> Offer:
    """Return what can be rented in a pool.

    Args:
        pool: The pool.
        provider: Name of the provider.
        facts: About its type; not needed when the configuration says everything.
        usd_per_hour: Price of one instance.
    """
    gpus = _gpus(pool, facts)
    return Offer(
        offer_id=pool.offer_id(provider),
        provider=provider,
        region=pool.region,
        zone=pool.zone,
        instance_type=pool.instance_type,
        market=pool.market,
        shape=_shape(pool, facts, gpus),
        labels=pool.labels,
        accelerator=gpus.accelerator if gpus else "",
        gpu_count=gpus.count if gpus else 0,
        usd_per_hour=usd_per_hour,
        max_count=pool.max_nodes,
        boot_s=pool.boot_time,
        rank=pool.rank,
    )


def _gpus(pool: Pool, facts: Machine | None) -> GpuRequest | None:
    if pool.gpus is not None:
        return pool.gpus
    if facts is None or not facts.gpu_count:
        return None
    return GpuRequest(accelerator=facts.gpu_name, count=facts.gpu_count)


def _shape(pool: Pool, facts: Machine | None, gpus: GpuRequest | None) -> Shape:
    shape: dict[str, float] = {}
    if cpus := pool.cpus or (facts.vcpu_count if facts else 0):
        shape["CPU"] = cpus
    if pool.memory is not None:
        shape["memory"] = pool.memory
    elif facts:
        shape["memory"] = int(facts.memory_bytes * WORK_MEMORY_RATIO)
    if gpus:
        shape["GPU"] = gpus.count
        if gpus.accelerator:
            # As Ray does on a machine with such GPUs: tasks ask for a share of it.
            shape[f"accelerator_type:{gpus.accelerator}"] = 1
    return shape
