"""What a pool costs on demand: by AWS's own list, else by the catalog, else not known."""

from __future__ import annotations

from collections.abc import Collection

from hybrid.core.catalog import Price, Terms, price
from hybrid.core.models import Market
from hybrid.core.ports import ProviderContext
from hybrid.core.prices import of_pool
from providers.aws.listprices import ListPrices
from providers.aws.params import Pool


class OnDemand:
    """Judges prices anew each time, since they grow old."""

    def __init__(self, context: ProviderContext, listed: ListPrices) -> None:
        self._context = context
        self._listed = listed

    def refresh(self, region: str, types: Collection[str]) -> None:
        """Ask AWS for what is due. What goes wrong is in the reason of `price`."""
        self._listed.refresh(region, types)

    def price(self, pool: Pool) -> Price:
        """Return the price of an instance, or why none is known."""
        row = self._listed.row(pool.region, pool.instance_type)
        live = None if row is None else price(row, Market.ON_DEMAND, self._terms())
        if live is not None and live.reason is None:
            return live
        shipped = self._shipped(pool)
        if shipped.reason is None:
            return shipped
        problem = self._listed.problem(pool.region, pool.instance_type)
        return of_pool(
            live or shipped,
            cause=f"AWS does not say one: {problem}" if problem else "",
            remedy="or allow pricing:GetProducts" if self._listed.is_silent(pool.region) else "",
        )

    def offline_price(self, pool: Pool) -> Price:
        """Return the price by the catalog alone, or why it has none."""
        ask = "or let a running controller ask AWS, which takes pricing:GetProducts"
        return of_pool(self._shipped(pool), remedy=ask if self._listed.is_asked else "")

    def _shipped(self, pool: Pool) -> Price:
        provider = pool.infra.partition("/")[0]
        return self._context.catalog.price(
            provider, pool.region, pool.instance_type, Market.ON_DEMAND, self._terms()
        )

    def _terms(self) -> Terms:
        return Terms(now_s=self._context.clock.now_s(), rates=self._context.rates)
