"""A table of machines and prices, looked up without any call.

Live prices of a cloud, and those a person writes down, go before these.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from hybrid.core import gpu_names
from hybrid.core.models import Market, Model
from hybrid.core.prices import (
    DEFAULT_MAX_AGE_S,
    USD,
    WRITE_YOURS,
    CatalogRow,
    Price,
    PriceSource,
    Terms,
    price,
    unusable,
)
from hybrid.core.quantity import GpuRequest

__all__ = [
    "DEFAULT_MAX_AGE_S",
    "USD",
    "Catalog",
    "CatalogRow",
    "OwnPrice",
    "Price",
    "PriceSource",
    "Quote",
    "RankBy",
    "Terms",
    "find",
    "price",
    "quotes",
    "rank",
    "with_own_prices",
]

RankBy: TypeAlias = Literal["hour", "gpu"]
"""By the price of a machine for an hour, or by that of each of its GPUs."""

_PRICE_OF = {Market.ON_DEMAND: "on_demand_per_hour", Market.SPOT: "spot_per_hour"}


class Quote(Model):
    """A row as it is bought on one market."""

    row: CatalogRow
    market: Market
    price: Price

    @property
    def usd_per_gpu_hour(self) -> float | None:
        """The price of each GPU, if there are any and it is known."""
        usd = self.price.usd_per_hour
        return None if usd is None or not self.row.gpu_count else usd / self.row.gpu_count


class OwnPrice(Model):
    """A price that a person wrote down for a type at a place.

    Attributes:
        gpu, gpu_count, vcpu_count: What it has, for types that the catalog does not know.
        source: Where it is written.
    """

    provider: str
    region: str = ""
    zone: str = ""
    instance_type: str
    market: Market = Market.ON_DEMAND
    per_hour: float
    currency: str = USD
    gpu: str = ""
    gpu_count: int = 0
    vcpu_count: int | None = None
    source: str


class Catalog(Model):
    """The table, with the sources of its prices. Empty unless it was loaded."""

    rows: tuple[CatalogRow, ...] = ()
    sources: tuple[PriceSource, ...] = ()

    def price(
        self, provider: str, region: str, instance_type: str, market: Market, terms: Terms
    ) -> Price:
        """Return the price of one type in one region. Never raises."""
        for row in self.rows:
            if (row.provider, row.region, row.instance_type) == (provider, region, instance_type):
                return price(row, market, terms)
        what = f"{instance_type} in {region}" if region else instance_type
        hint = self._meant(provider, region, instance_type)
        message = f"the catalog has no {what} of {provider}{hint}; {WRITE_YOURS}"
        return unusable("not_in_catalog", message)

    def _meant(self, provider: str, region: str, instance_type: str) -> str:
        """Return a guess at what was meant, or `""`."""
        rows = [row for row in self.rows if row.provider == provider]
        for asked, known in (
            (region, {row.region for row in rows}),
            (instance_type, {row.instance_type for row in rows}),
        ):
            near = [] if asked in known else difflib.get_close_matches(asked, sorted(known), n=1)
            if near:
                return f" (did you mean {near[0]}?)"
        return ""

    def inside(self, provider: str, instance_type: str) -> CatalogRow | None:
        """Return a row of the type in any region, for what is inside the machine."""
        rows = (r for r in self.rows if (r.provider, r.instance_type) == (provider, instance_type))
        return next(rows, None)


def find(
    rows: Iterable[CatalogRow], *, gpus: GpuRequest | None = None, infra: Collection[str] = ()
) -> tuple[CatalogRow, ...]:
    """Return the rows that fit, in their order.

    Args:
        rows: Where to look.
        gpus: At least so many on one machine; of any type when it names none.
        infra: Places, such as `aws` or `gcp/us-central1`; everywhere when empty. A row that
            does not know its zones is in each zone of its region.

    Raises:
        ValueError: No row at all has that type of GPU, or is at such a place.
    """
    found = tuple(rows)
    for place in infra:
        if not any(_is_at(row, place) for row in found):
            raise ValueError(_nowhere(place, found))
    if gpus is not None and gpus.accelerator:
        _check_known(gpus.accelerator, found)
    return tuple(
        row
        for row in found
        if (not infra or any(_is_at(row, place) for place in infra)) and _has(row, gpus)
    )


def quotes(
    rows: Iterable[CatalogRow], terms: Terms, *, market: Market | None = None
) -> Iterator[Quote]:
    """Yield what the rows cost on a market, or on both.

    What has no price on a market that was not asked for by name is not worth a line, unless
    it has none at all.
    """
    for row in rows:
        known = [m for m in Market if row.per_hour(m) is not None]
        asked = [m for m in Market if m in known] if market is None else [market]
        if market is not None and row.is_own and market not in known:
            continue
        for one in asked or [Market.ON_DEMAND]:
            yield Quote(row=row, market=one, price=price(row, one, terms))


def rank(found: Iterable[Quote], *, by: RankBy = "hour") -> tuple[Quote, ...]:
    """Return quotes, the cheapest first, and those without a usable price at the end."""
    return tuple(sorted(found, key=lambda quote: _rank_key(quote, by)))


def with_own_prices(rows: Sequence[CatalogRow], own: Iterable[OwnPrice]) -> tuple[CatalogRow, ...]:
    """Return rows with a person's prices instead of the catalog's for the same thing.

    A price for one zone stands beside that of its region; one for the region replaces it.
    What the catalog knows of a type without a price is of no more use beside a price.
    """
    result = list(rows)
    added = []
    for mine in own:
        wanted = (mine.provider, mine.region, mine.instance_type)
        at = next((i for i, row in enumerate(result) if _key(row) == wanted), None)
        known = result[at] if at is not None else None
        same_type = known or next(
            (row for row in rows if _kind(row) == (mine.provider, mine.instance_type)), None
        )
        added.append(_own_row(mine, same_type))
        if at is not None and known is not None and not mine.zone:
            result[at] = known.model_copy(update={_PRICE_OF[mine.market]: None})
    priced = {_kind(row) for row in added}
    return (*added, *(row for row in result if _has_price(row) or _kind(row) not in priced))


def _has(row: CatalogRow, gpus: GpuRequest | None) -> bool:
    if gpus is None:
        return True
    is_type = not gpus.accelerator or gpu_names.is_same(
        gpus.accelerator, row.gpu, row.gpu_memory_gib
    )
    return row.gpu_count >= gpus.count and is_type


def _check_known(asked: str, rows: Sequence[CatalogRow]) -> None:
    known = {(row.gpu, row.gpu_memory_gib) for row in rows if row.gpu}
    if not any(gpu_names.is_same(asked, name, memory_gib) for name, memory_gib in known):
        raise ValueError(gpu_names.unknown(asked, {name for name, _ in known}))


def _is_at(row: CatalogRow, place: str) -> bool:
    provider, region, zone = (*place.split("/"), "", "")[:3]
    return (
        row.provider == provider
        and region in ("", row.region)
        and (not zone or not row.zones or zone in row.zones)
    )


def _nowhere(place: str, rows: Sequence[CatalogRow]) -> str:
    provider, region, _ = (*place.split("/"), "", "")[:3]
    there = sorted({row.region for row in rows if row.provider == provider and row.region})
    known = [f"{provider}/{name}" for name in there] or sorted({row.provider for row in rows})
    asked = f"{provider}/{region}" if there else provider
    what = f"the catalog has nothing at {place!r}"
    near = difflib.get_close_matches(asked, known, n=1)
    if near and near[0] != asked:
        return f"{what}; did you mean {near[0]}?"
    if near:
        zones = sorted({zone for row in rows if row.place == asked for zone in row.zones})
        return f"{what}; of {asked} it has {', '.join(zones)}"
    return f"{what}; it has {', '.join(known) or 'no rows'}"


def _rank_key(quote: Quote, by: RankBy) -> tuple[object, ...]:
    row, usd = quote.row, quote.price.usd_per_hour
    cost = quote.usd_per_gpu_hour if by == "gpu" else usd
    code = quote.price.reason.code if quote.price.reason else ""
    worth = math.inf if cost is None else cost
    then = (row.provider, row.region, row.instance_type, quote.market.value)
    return (usd is None, code, worth, usd or 0.0, then)


def _key(row: CatalogRow) -> tuple[str, str, str]:
    return (row.provider, row.region, row.instance_type)


def _kind(row: CatalogRow) -> tuple[str, str]:
    return (row.provider, row.instance_type)


def _has_price(row: CatalogRow) -> bool:
    return any(row.per_hour(market) is not None for market in Market)


def _own_row(mine: OwnPrice, known: CatalogRow | None) -> CatalogRow:
    row = known or CatalogRow(
        provider=mine.provider,
        instance_type=mine.instance_type,
        gpu=mine.gpu,
        gpu_count=mine.gpu_count,
        vcpu_count=mine.vcpu_count,
        source=mine.source,
    )
    prices = {_PRICE_OF[market]: None for market in Market}
    return row.model_copy(
        update={
            **prices,
            _PRICE_OF[mine.market]: mine.per_hour,
            "currency": mine.currency,
            "region": mine.region,
            "zones": (mine.zone,) if mine.zone else (),
            "is_own": True,
            "is_confirmed": True,
            "source": mine.source,
            "as_of": None,
        }
    )
