"""What GPU machines cost, as far as it is known: a table, looked up without any call.

A price that is not known, too old or impossible is never guessed: it comes with a reason
instead. Live prices of a cloud, and those a person writes down, go before these.
"""

from __future__ import annotations

import datetime as dt
import difflib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from hybrid.core import gpu_names
from hybrid.core.models import Market, Model, Reason
from hybrid.core.quantity import GpuRequest

DAY_S = 86_400.0
DEFAULT_MAX_AGE_S = 365 * DAY_S
USD = "USD"

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()

RankBy: TypeAlias = Literal["hour", "gpu"]
"""By the price of a machine for an hour, or by that of each of its GPUs."""


class CatalogRow(Model):
    """One type of machine in one region, and what it costs.

    Prices are taken as they come, whatever they are: `price` judges them.

    Attributes:
        zones: Where in the region it is known to be; empty when nobody says.
        gpu: Our name of its GPUs (see `core.gpu_names`); `""` when it has none.
        gpu_memory_gib: Memory of one GPU, in the words of the source.
        on_demand_per_hour, spot_per_hour: In `currency`; `None` when not known.
        is_confirmed: Whether more than a price list says that the region has it.
        is_own: Whether a person wrote this price down. Such a price has no age.
        source: Id of a `PriceSource`, or the place in a file.
        as_of: Day of the price.
    """

    provider: str
    region: str = ""
    zones: tuple[str, ...] = ()
    instance_type: str
    gpu: str = ""
    gpu_count: int = Field(default=0, ge=0)
    gpu_memory_gib: float | None = None
    vcpu_count: int | None = None
    memory_gib: float | None = None
    currency: str = Field(default=USD, pattern="^[A-Z]{3}$")
    on_demand_per_hour: float | None = None
    spot_per_hour: float | None = None
    is_confirmed: bool = True
    is_own: bool = False
    source: str
    as_of: dt.date | None = None

    @property
    def place(self) -> str:
        """Provider and region, as `infra` has them."""
        return f"{self.provider}/{self.region}" if self.region else self.provider

    def per_hour(self, market: Market) -> float | None:
        """Return its price as it stands, in `currency`."""
        return self.spot_per_hour if market is Market.SPOT else self.on_demand_per_hour


class PriceSource(Model):
    """Where prices of the catalog come from.

    Attributes:
        source_id: What rows call it.
        origin: Repository and commit, or address.
        path: File in there.
        as_of: Day of the prices; `None` when nobody says.
    """

    source_id: str
    origin: str
    path: str = ""
    licence: str
    as_of: dt.date | None = None


class Terms(Model):
    """What makes a price usable.

    Attributes:
        now_s: Now.
        max_age_s: Older prices are not trusted.
        rates: Units of a currency for one US dollar, by currency, such as `{"CNY": 7.1}`.
        is_confirmed_only: Refuse what only a price list says to be there. For lists to choose
            from; a place that a person wrote down is theirs to know.
    """

    now_s: float
    max_age_s: float = DEFAULT_MAX_AGE_S
    rates: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict
    )
    is_confirmed_only: bool = False


class Price(Model):
    """A usable price, or why there is none: exactly one of the two is set.

    Attributes:
        usd_per_hour: Of one machine.
    """

    usd_per_hour: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    reason: Reason | None = None


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
        gpu, gpu_count: What it has, for types that the catalog does not know.
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
        return _none("not_in_catalog", f"the catalog has no {what} of {provider}; {_WRITE}")

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


def price(row: CatalogRow, market: Market, terms: Terms) -> Price:
    """Return what an hour of one machine costs, or why that is not known well enough."""
    amount = row.per_hour(market)
    kind = market.value.replace("_", "-")
    if amount is None:
        return _none("no_price", f"no {kind} price is known; {_WRITE}")
    if reason := _why_no_price(amount, kind) or _why_not_above(row, market):
        return Price(reason=reason)
    if reason := _why_no_rate(row.currency, terms) or _why_too_old(row, terms):
        return Price(reason=reason)
    if terms.is_confirmed_only and not row.is_confirmed:
        what = f"only a price list names {row.region}; {row.provider} may not have it there"
        return _none("unconfirmed", f"{what}; ask {row.provider} before you rely on it")
    usd = amount / terms.rates.get(row.currency, 1.0)
    if reason := _why_no_price(usd, kind):  # of amounts and rates beyond all sense
        return Price(reason=reason)
    return Price(usd_per_hour=usd)


def with_own_prices(rows: Sequence[CatalogRow], own: Iterable[OwnPrice]) -> tuple[CatalogRow, ...]:
    """Return rows with a person's prices instead of the catalog's for the same thing.

    A price for one zone stands beside that of its region; one for the region replaces it.
    """
    result = list(rows)
    added = []
    for mine in own:
        wanted = (mine.provider, mine.region, mine.instance_type)
        at = next((i for i, row in enumerate(result) if _key(row) == wanted), None)
        known = result[at] if at is not None else None
        same_type = known or next((row for row in rows if _key(row)[::2] == wanted[::2]), None)
        added.append(_own_row(mine, same_type))
        if at is not None and known is not None and not mine.zone:
            result[at] = known.model_copy(update={_PRICE_OF[mine.market]: None})
    priced = {_key(row) for row in added}
    return (*added, *(row for row in result if _has_price(row) or _key(row) not in priced))


# --- judging a price -----------------------------------------------------------------------

_WRITE = "write yours as usd_per_hour of a pool in hybrid.yaml"
_PRICE_OF = {Market.ON_DEMAND: "on_demand_per_hour", Market.SPOT: "spot_per_hour"}


def _none(code: str, message: str, **facts: float | str) -> Price:
    return Price(reason=Reason(code=code, message=message, facts=facts))


def _why_no_price(amount: float, kind: str) -> Reason | None:
    if not math.isfinite(amount):
        return Reason(code="not_a_number", message=f"the {kind} price is {amount}; {_WRITE}")
    if amount == 0:
        message = f"the {kind} price is 0, which stands for unknown; {_WRITE}"
        return Reason(code="zero", message=message)
    if amount < 0:
        return Reason(code="negative", message=f"the {kind} price is {amount:g}; {_WRITE}")
    return None


def _why_not_above(row: CatalogRow, market: Market) -> Reason | None:
    spot, full = row.spot_per_hour, row.on_demand_per_hour
    if market is not Market.SPOT or spot is None or full is None or not 0 < full < spot:
        return None
    message = (
        f"the spot price, {spot:g}, is above the on-demand price, {full:g} {row.currency} per "
        "hour; one of them is wrong, and on-demand is the safer buy"
    )
    facts = {"spot_per_hour": spot, "on_demand_per_hour": full, "currency": row.currency}
    return Reason(code="spot_above_on_demand", message=message, facts=facts)


def _why_no_rate(currency: str, terms: Terms) -> Reason | None:
    if currency == USD or currency in terms.rates:
        return None
    message = (
        f"the price is in {currency}, and how many {currency} a US dollar costs is not known; "
        "give that rate"
    )
    return Reason(code="no_rate", message=message, facts={"currency": currency})


def _why_too_old(row: CatalogRow, terms: Terms) -> Reason | None:
    if row.is_own:
        return None
    if row.as_of is None:
        return Reason(code="undated", message=f"nobody says from when the price is; {_WRITE}")
    age_s = terms.now_s - (row.as_of.toordinal() - _EPOCH_DAY) * DAY_S
    facts = {"as_of": row.as_of.isoformat(), "age_s": age_s, "max_age_s": terms.max_age_s}
    if age_s > terms.max_age_s:
        message = (
            f"the price is from {row.as_of}, {age_s / DAY_S:.0f} days ago; at most "
            f"{terms.max_age_s / DAY_S:.0f} are allowed"
        )
        return Reason(code="stale", message=message, facts=facts)
    if age_s < -DAY_S:  # a day for time zones
        message = f"the price is from {row.as_of}, which is yet to come; check this machine's clock"
        return Reason(code="future", message=message, facts=facts)
    return None


# --- looking up ----------------------------------------------------------------------------


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


def _has_price(row: CatalogRow) -> bool:
    return any(row.per_hour(market) is not None for market in Market)


def _own_row(mine: OwnPrice, known: CatalogRow | None) -> CatalogRow:
    row = known or CatalogRow(
        provider=mine.provider,
        instance_type=mine.instance_type,
        gpu=mine.gpu,
        gpu_count=mine.gpu_count,
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
