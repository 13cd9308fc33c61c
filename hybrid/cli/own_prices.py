"""The prices that a person wrote down in hybrid.yaml, for `hybrid offers`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from hybrid.core.catalog import OwnPrice
    from hybrid.settings import Settings
    from hybrid.settings.machines import Pool

_CNY = "CNY"


def prices(settings: Settings) -> Iterator[OwnPrice]:
    """Yield the price of each pool that has one and names a type of machine."""
    from hybrid.core.catalog import OwnPrice
    from hybrid.core.gpu_names import named
    from hybrid.core.models import Market

    clouds = settings.clouds
    for place, pool in enumerate(clouds.pools if clouds else ()):
        instance_type, cost = _extras(pool).get("instance_type"), _cost(pool)
        if not isinstance(instance_type, str) or clouds is None or cost is None:
            continue
        _, region, zone = (*pool.infra.split("/"), "", "")[:3]
        yield OwnPrice(
            provider=pool.provider,
            region=region,
            zone=zone,
            instance_type=instance_type,
            market=Market.SPOT if pool.use_spot else Market.ON_DEMAND,
            per_hour=cost[0],
            currency=cost[1],
            gpu=named(pool.accelerators.accelerator) if pool.accelerators else "",
            gpu_count=pool.gpu_count,
            source=f"{settings.source}: clouds.{clouds.kind}[{place}]",
        )


def rates(settings: Settings) -> Mapping[str, float]:
    """Return the exchange rates of the file: `exchange.cny_per_usd` of a provider."""
    for account in settings.providers.values():
        exchange = account.get("exchange")
        rate = exchange.get("cny_per_usd") if isinstance(exchange, Mapping) else None
        if _is_number(rate) and rate > 0:
            return {_CNY: float(rate)}
    return {}


def _cost(pool: Pool) -> tuple[float, str] | None:
    if pool.usd_per_hour is not None:
        return pool.usd_per_hour, "USD"
    cny = _extras(pool).get("cny_per_hour")
    return (float(cny), _CNY) if _is_number(cny) else None


def _extras(pool: Pool) -> Mapping[str, object]:
    return pool.model_extra or {}


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)
