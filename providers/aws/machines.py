"""What the catalog knows of an instance type, for what the configuration does not say; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hybrid.core import gpu_names
from hybrid.core.catalog import Catalog, CatalogRow, Terms
from hybrid.core.models import Market
from hybrid.core.quantity import gpu_request

WORK_MEMORY_RATIO = 0.6
"""Of a machine's memory, what tasks may ask for: Ray's object store takes 30 %, the rest the
system."""

_GIB = 2**30


@dataclass(frozen=True)
class Knowledge:
    """The catalog, and how old its prices may be."""

    catalog: Catalog = field(default_factory=Catalog)
    terms: Terms = field(default_factory=lambda: Terms(now_s=0.0))

    def filled(self, pool: Mapping[str, object]) -> dict[str, object]:
        """Return a pool of the configuration with what the catalog adds to it.

        The price of a spot pool is left to the market.

        Raises:
            ValueError: There is no price that can be used, or the pool contradicts the catalog.
        """
        said = {key: value for key, value in pool.items() if value is not None}
        provider, region = (*str(said.get("infra", "")).split("/"), "")[:2]
        instance_type = str(said.get("instance_type", ""))
        row = self.catalog.inside(provider, instance_type)
        if row is not None:
            said = {**_inside(row), **said}
            _check_gpus(row, str(said.get("accelerators") or ""))
        is_priced = "usd_per_hour" in said or said.get("use_spot") is True
        if not is_priced and instance_type and region:
            price = self.catalog.price(
                provider, region, instance_type, Market.ON_DEMAND, self.terms
            )
            if price.reason is not None:
                raise ValueError(price.reason.message)
            said["usd_per_hour"] = price.usd_per_hour
        return said

    def on_demand_usd_per_hour(self, infra: str, instance_type: str) -> float | None:
        """Return what a type costs without the spot market, if the catalog knows."""
        provider, region = infra.split("/")[:2]
        market = Market.ON_DEMAND
        return self.catalog.price(provider, region, instance_type, market, self.terms).usd_per_hour


def _inside(row: CatalogRow) -> dict[str, object]:
    inside: dict[str, object] = {}
    if row.vcpu_count:
        inside["cpus"] = row.vcpu_count
    if row.memory_gib:
        inside["memory"] = int(row.memory_gib * _GIB * WORK_MEMORY_RATIO)
    if row.gpu:
        inside["accelerators"] = f"{gpu_names.ray_type(row.gpu)}:{row.gpu_count}"
    return inside


def _check_gpus(row: CatalogRow, text: str) -> None:
    """Raise `ValueError` when tasks would be promised GPUs that the machine does not have."""
    asked = gpu_request(text) if text else None
    name, count = (asked.accelerator, asked.count) if asked else ("", 0)
    is_type = not name or gpu_names.is_same(name, row.gpu, row.gpu_memory_gib)
    if count != row.gpu_count or not is_type:
        has = f"{gpu_names.ray_type(row.gpu)}:{row.gpu_count}" if row.gpu else "no GPU"
        raise ValueError(
            f"accelerators is {text or 'empty'}, but {row.instance_type} has {has}; leave it out, "
            "or correct one of them"
        )
