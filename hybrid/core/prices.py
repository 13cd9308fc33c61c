"""What one machine costs for an hour, judged: usable, or why not.

A price that is not known, too old or impossible is never guessed: it comes with a reason
instead.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from hybrid.core.models import Market, Model, Reason
from hybrid.core.quantity import duration_text

DAY_S = 86_400.0
DEFAULT_MAX_AGE_S = 365 * DAY_S
USD = "USD"
WRITE_YOURS = "write yours as usd_per_hour of a pool, or under prices.overrides, in hybrid.yaml"

_FOR_THE_POOL = "write usd_per_hour of the pool, or a price under prices.overrides"
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()


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


def price(row: CatalogRow, market: Market, terms: Terms) -> Price:
    """Return what an hour of one machine costs, or why that is not known well enough."""
    amount = row.per_hour(market)
    kind = market.value.replace("_", "-")
    if amount is None:
        return unusable("no_price", f"no {kind} price is known; {WRITE_YOURS}")
    if reason := _why_no_price(amount, kind) or _why_not_above(row, market):
        return Price(reason=reason)
    if reason := _why_no_rate(row.currency, terms) or _why_too_old(row, terms):
        return Price(reason=reason)
    if terms.is_confirmed_only and not row.is_confirmed:
        what = f"only a price list names {row.region}; {row.provider} may not have it there"
        return unusable("unconfirmed", f"{what}; ask {row.provider} before you rely on it")
    usd = amount if row.currency == USD else amount / terms.rates[row.currency]
    if reason := _why_no_price(usd, kind):  # of amounts and rates beyond all sense
        return Price(reason=reason)
    return Price(usd_per_hour=usd)


def of_pool(judged: Price, *, cause: str = "", remedy: str = "") -> Price:
    """Return a price for a pool: where there is none, the reason says what to do in hybrid.yaml.

    Args:
        judged: The price.
        cause: Why nobody else has one either, such as what the cloud answered.
        remedy: What else would help, beginning with `or`.
    """
    if judged.reason is None:
        return judged
    words = judged.reason.message.removesuffix(f"; {WRITE_YOURS}")
    todo = ", ".join(filter(None, (_FOR_THE_POOL, remedy)))
    message = "; ".join(filter(None, (f"no price known: {words}", cause, todo)))
    return Price(reason=judged.reason.model_copy(update={"message": message}))


def unusable(code: str, message: str, **facts: float | str) -> Price:
    """Return the lack of a usable price."""
    return Price(reason=Reason(code=code, message=message, facts=facts))


def _why_no_price(amount: float, kind: str) -> Reason | None:
    if not math.isfinite(amount):
        return Reason(code="not_a_number", message=f"the {kind} price is {amount}; {WRITE_YOURS}")
    if amount == 0:
        message = f"the {kind} price is 0, which stands for unknown; {WRITE_YOURS}"
        return Reason(code="zero", message=message)
    if amount < 0:
        return Reason(code="negative", message=f"the {kind} price is {amount:g}; {WRITE_YOURS}")
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
        "write that rate under prices.rates"
    )
    return Reason(code="no_rate", message=message, facts={"currency": currency})


def _why_too_old(row: CatalogRow, terms: Terms) -> Reason | None:
    if row.is_own:
        return None
    if row.as_of is None:
        return Reason(code="undated", message=f"nobody says from when the price is; {WRITE_YOURS}")
    age_s = terms.now_s - (row.as_of.toordinal() - _EPOCH_DAY) * DAY_S
    facts = {"as_of": row.as_of.isoformat(), "age_s": age_s, "max_age_s": terms.max_age_s}
    if age_s > terms.max_age_s:
        message = (
            f"the price is from {row.as_of}, {age_s // DAY_S:.0f} days ago, and older than "
            f"{duration_text(terms.max_age_s)} is not trusted"
        )
        return Reason(code="stale", message=message, facts=facts)
    if age_s < -DAY_S:  # a day for time zones
        message = f"the price is from {row.as_of}, which is yet to come; check this machine's clock"
        return Reason(code="future", message=message, facts=facts)
    return None
