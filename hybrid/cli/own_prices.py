"""The prices that a person wrote down in hybrid.yaml, for `hybrid offers`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from hybrid.core.catalog import CatalogRow, OwnPrice
    from hybrid.core.models import Market
    from hybrid.settings import Settings

_CNY = "CNY"
_ANY_TYPE = "as in the pool"  # of a machine that is described by what it has


def prices(settings: Settings, rows: Sequence[CatalogRow]) -> Iterator[OwnPrice]:
    """Yield the price of each pool that has one, then overrides.

    Args:
        settings: Where they are.
        rows: The catalog: an override for a whole provider is one for each region that has
            the type.
    """
    taken = set()
    for mine in _of_pools(settings):
        taken.add((mine.provider, mine.region, mine.zone, mine.instance_type, mine.market))
        yield mine
    for mine in _of_overrides(settings, rows):
        if (mine.provider, mine.region, mine.zone, mine.instance_type, mine.market) not in taken:
            yield mine


def rates(settings: Settings) -> Mapping[str, float]:
    """Return the exchange rates of the file: `prices.rates`, or `exchange` of a provider."""
    found = dict(settings.prices.rates)
    for account in settings.providers.values():
        exchange = account.get("exchange")
        rate = exchange.get("cny_per_usd") if isinstance(exchange, Mapping) else None
        if _is_number(rate) and rate > 0:
            found.setdefault(_CNY, float(rate))
    return found


def _of_pools(settings: Settings) -> Iterator[OwnPrice]:
    from hybrid.core.catalog import OwnPrice
    from hybrid.core.gpu_names import named
    from hybrid.settings.places import EMBEDDED

    # The embedded default is an example; nobody wrote down its price.
    clouds = settings.clouds if settings.source != EMBEDDED else None
    for place, pool in enumerate(clouds.pools if clouds else ()):
        if clouds is None or pool.own_price is None:
            continue
        amount, currency = pool.own_price
        _, region, zone = (*pool.infra.split("/"), "", "")[:3]
        yield OwnPrice(
            provider=pool.provider,
            region=region,
            zone=zone,
            instance_type=pool.instance_type or _ANY_TYPE,
            market=_market(pool.use_spot),
            per_hour=amount,
            currency=currency,
            gpu=named(pool.accelerators.accelerator) if pool.accelerators else "",
            gpu_count=pool.gpu_count,
            vcpu_count=pool.cpus,
            source=f"{settings.source}: clouds.{clouds.kind}[{place}]",
        )


def _of_overrides(settings: Settings, rows: Sequence[CatalogRow]) -> Iterator[OwnPrice]:
    from hybrid.core.catalog import OwnPrice

    # The narrowest first: what is said of a region holds there, whatever is said of all.
    overrides = sorted(
        enumerate(settings.prices.overrides), key=lambda item: -item[1].infra.count("/")
    )
    done = set()
    for place, override in overrides:
        provider, region, zone = (*override.infra.split("/"), "", "")[:3]
        kind = (provider, override.instance_type)
        known = {row.region for row in rows if (row.provider, row.instance_type) == kind}
        for there in [region] if region else sorted(known) or [""]:
            key = (kind, there, zone, override.use_spot)
            if key not in done:
                done.add(key)
                yield OwnPrice(
                    provider=provider,
                    region=there,
                    zone=zone,
                    instance_type=override.instance_type,
                    market=_market(override.use_spot),
                    per_hour=override.per_hour,
                    currency=override.currency,
                    source=f"{settings.source}: prices.overrides[{place}]",
                )


def _market(is_spot: bool) -> Market:
    from hybrid.core.models import Market

    return Market.SPOT if is_spot else Market.ON_DEMAND


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)
