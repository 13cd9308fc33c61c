"""Settings of money: exchange rates, and prices that take the place of listed ones."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field

from hybrid.core.prices import USD
from hybrid.settings.fields import Currency, Flag, Infra, Price, Rates, Text
from hybrid.settings.machines import Pool
from hybrid.settings.section import Section


class PriceOverride(Section):
    """A price of yours for one type of machine, wherever a pool has none of its own."""

    infra: Infra = Field(description="Where: PROVIDER, PROVIDER/REGION or PROVIDER/REGION/ZONE.")
    instance_type: Text = Field(description="The cloud's name of the type.")
    use_spot: Flag = Field(default=False, description="The price on the spot market.")
    per_hour: Price = Field(description="Of one machine, in `currency`.")
    currency: Currency = Field(USD, description="USD, or one that `prices.rates` has.")

    def is_for(self, pool: Pool) -> bool:
        """Return whether it is about the machines of a pool."""
        is_there = f"{pool.infra}/".startswith(f"{self.infra}/")
        wanted = (self.instance_type, self.use_spot)
        return is_there and (pool.instance_type, pool.use_spot) == wanted


class OwnUsd(NamedTuple):
    """A price of an override, in dollars per hour, and its place in the list."""

    usd_per_hour: float
    place: int


class Prices(Section):
    """Prices of your own, for the controller, `hybrid plan --offline` and `hybrid offers`."""

    rates: Rates = Field(
        default_factory=dict,
        description="Units of a currency for one US dollar, such as {CNY: 7.1}. No default.",
    )
    overrides: tuple[PriceOverride, ...] = Field(
        (), description="Instead of listed prices; of several for a machine the narrowest wins."
    )

    def usd(self, override: PriceOverride) -> float | None:
        """Return an override's price in dollars; `None` without a rate for its currency."""
        if override.currency == USD:
            return override.per_hour
        rate = self.rates.get(override.currency)
        return None if rate is None else override.per_hour / rate

    def of(self, pool: Pool) -> OwnUsd | None:
        """Return the price that stands in for one that a pool lacks."""
        if pool.own_price is not None:
            return None
        for place, override in sorted(
            enumerate(self.overrides), key=lambda item: -item[1].infra.count("/")
        ):
            usd = self.usd(override) if override.is_for(pool) else None
            if usd is not None:
                return OwnUsd(usd, place)
        return None
