"""What the configuration says about the clouds, judged without asking them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.adapters import catalog
from hybrid.app.makers import check_sdks, make_providers
from hybrid.core.catalog import Catalog, find
from hybrid.core.models import Market, Offer, Reason
from hybrid.core.models.withheld import Offered, Withheld
from hybrid.core.offline import PoolView
from hybrid.core.ports import Clock, Provider
from hybrid.core.ports.pools import OfflineProvider
from hybrid.settings import Settings, SettingsError
from hybrid.settings.machines import Pool
from hybrid.settings.problem import Problem, path_text

NOT_ASKED = (
    "credentials and permissions",
    "quota and stock",
    "whether images and networks exist",
    "spot prices of the moment",
)
"""What nobody can know without asking the clouds."""


@dataclass(frozen=True)
class PoolOffer:
    """A pool, and what became of it.

    Attributes:
        view: The same for people and programs.
        said: What its adapter says of it.
    """

    view: PoolView
    said: Offered

    @property
    def offer(self) -> Offer | None:
        """What can be rented; `None` when `view` says why not."""
        return self.said if isinstance(self.said, Offer) else None


def pool_offers(settings: Settings, clock: Clock) -> tuple[PoolOffer, ...]:
    """Return what became of each pool, in the order of the file.

    Makes no call, needs no credentials and writes nothing.

    Raises:
        SettingsError: A provider refuses its settings; the error names every place in the file.
    """
    if settings.clouds is None and not settings.providers:
        return ()
    prices = catalog.load()
    # A folder that is not there: of the local cloud's machines too none is looked at.
    nowhere = settings.state_path / "nothing-is-written-here"
    made = make_providers(
        settings, nowhere, nowhere, cluster_id="offline", clock=clock, prices=prices
    )
    said = {name: iter(_said(settings, provider)) for name, provider in made.items()}
    pools = settings.clouds.pools if settings.clouds else ()
    return tuple(
        _pool_offer(settings, place, pool, next(said[pool.provider]), prices)
        for place, pool in enumerate(pools)
    )


def checked(settings: Settings, clock: Clock) -> tuple[PoolOffer, ...]:
    """Return the same as `pool_offers`, and make sure that the SDKs are installed.

    Raises:
        SettingsError: With everything that is wrong.
    """
    problems: list[Problem] = []
    offered: tuple[PoolOffer, ...] = ()
    try:
        offered = pool_offers(settings, clock)
    except SettingsError as error:
        problems += error.problems
    try:
        check_sdks(settings)
    except SettingsError as error:
        problems += error.problems
    if problems:
        raise SettingsError(settings.source, problems)
    return offered


def doubts(settings: Settings, offered: tuple[PoolOffer, ...]) -> Iterator[str]:
    """Yield one sentence for each pool that may not do what its author expects."""
    prices = catalog.load() if offered else Catalog()
    known = {row.provider for row in prices.rows if row.region}
    for pool, item in zip(settings.clouds.pools if settings.clouds else (), offered, strict=True):
        view = item.view
        if view.reason is not None:
            yield f"{view.pool} is no offer by what is known here: {view.reason.message}"
        if pool.provider in known:
            yield from _unlisted(view, pool, prices)


def _unlisted(view: PoolView, pool: Pool, prices: Catalog) -> Iterator[str]:
    """Yield what the price list does not know of a pool: lists are incomplete, so no error."""
    try:
        find(prices.rows, infra=[pool.infra])
    except ValueError as error:
        yield f"{view.pool}.infra: {error}; leave it if the cloud has that place"
    kinds = {row.instance_type for row in prices.rows if row.provider == pool.provider}
    if view.gpu_count and view.instance_type not in kinds:
        near = difflib.get_close_matches(view.instance_type, kinds, n=1)
        hint = f"did you mean {near[0]}?" if near else "check the spelling"
        yield f"{view.pool}.instance_type: the catalog has no {view.instance_type}; {hint}"


def _said(settings: Settings, provider: Provider) -> Iterator[Offered]:
    if isinstance(provider, OfflineProvider):
        yield from provider.offline_offers()
        return
    # One that was not made for this; whatever it offers, it is asked by a controller only.
    for pool in settings.clouds.pools if settings.clouds else ():
        if pool.provider == provider.name:
            words = f"{provider.name} says what it offers to a running controller only"
            yield Withheld(
                offer_id=f"{pool.infra}/{pool.instance_type}".rstrip("/"),
                provider=pool.provider,
                instance_type=pool.instance_type,
                market=_market(pool),
                accelerator=pool.accelerators.accelerator if pool.accelerators else "",
                gpu_count=pool.gpu_count if pool.accelerators else None,
                reason=Reason(code="online_only", message=words),
            )


def _pool_offer(
    settings: Settings, place: int, pool: Pool, said: Offered, prices: Catalog
) -> PoolOffer:
    where = path_text(("clouds", settings.clouds.kind if settings.clouds else "", place))
    offer = said if isinstance(said, Offer) else None
    view = PoolView(
        pool=where,
        provider=pool.provider,
        offer_id=said.offer_id,
        instance_type=said.instance_type,
        market=said.market.value,
        gpus=f"{said.accelerator or 'GPU'}:{said.gpu_count}" if said.gpu_count else "",
        gpu_count=said.gpu_count,
        usd_per_hour=offer.usd_per_hour if offer else None,
        at_most_usd_per_hour=offer.usd_per_hour if offer else _at_most(said),
        max_count=pool.max_nodes,
        reason=said.reason if isinstance(said, Withheld) else None,
    )
    if offer is not None:
        view = view.model_copy(update=_origin(settings, where, pool, offer, prices))
    return PoolOffer(view, said)


def _at_most(said: Offered) -> float | None:
    return said.at_most_usd_per_hour if isinstance(said, Withheld) else None


def _origin(
    settings: Settings, where: str, pool: Pool, offer: Offer, prices: Catalog
) -> dict[str, object]:
    """Return where the price of an offer is from."""
    if pool.own_price is not None:
        return {"is_own_price": True, "price_source": where}
    if (own := settings.prices.of(pool)) is not None:
        return {"is_own_price": True, "price_source": f"prices.overrides[{own.place}]"}
    wanted = (offer.provider, offer.region, offer.instance_type)
    for row in prices.rows:
        if (row.provider, row.region, row.instance_type) == wanted:
            return {"price_source": row.source, "as_of": row.as_of}
    return {}


def _market(pool: Pool) -> Market:
    return Market.SPOT if pool.use_spot else Market.ON_DEMAND
