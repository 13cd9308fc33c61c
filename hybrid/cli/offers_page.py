"""What `hybrid offers` answers: the JSON shape, and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hybrid.cli import words
from hybrid.cli.rests import rest_parts
from hybrid.cli.table import Column, Part, table, text
from hybrid.core.catalog import Quote
from hybrid.core.prices import PriceSource, Terms
from hybrid.core.views import OffersView, OfferView


def offers_view(
    found: Sequence[Quote],
    sources: Sequence[PriceSource],
    terms: Terms,
    *,
    limit: int | None,
    is_all: bool,
) -> OffersView:
    """Return the answer.

    Args:
        found: What fits, ranked.
        sources: Sources of the catalog.
        terms: What made a price usable.
        limit: At most so many offers, and as many without a price; `None` for no limit.
        is_all: Whether those without a usable price are wanted too.
    """
    shown = [_view(quote) for quote in found if quote.price.reason is None]
    refused = [_view(quote) for quote in found if quote.price.reason is not None]
    counts = Counter(offer.reason.code for offer in refused if offer.reason)
    offers, ineligible = shown[:limit], refused[:limit] if is_all else []
    used = {offer.source for offer in (*offers, *ineligible)}
    return OffersView(
        at_s=terms.now_s,
        offers=tuple(offers),
        more_count=len(shown) - len(offers),
        ineligible=tuple(ineligible),
        ineligible_count_by_code=dict(counts.most_common()),
        max_age_s=terms.max_age_s,
        rates=terms.rates,
        sources=tuple(source for source in sources if source.source_id in used),
    )


def offers_page(view: OffersView) -> list[Part]:
    """Return the page."""
    page: list[Part] = []
    if view.offers:
        page.append(_offer_table(view.offers))
    page += [text("")] if page else []
    page.append(text(_count_line(view)))
    if view.ineligible:
        page += [text(""), _refusal_table(view.ineligible), text("")]
    if view.ineligible_count_by_code:
        page.append(text(_refusal_line(view)))
        page += [
            text(hint) for code, hint in _HINTS.items() if code in view.ineligible_count_by_code
        ]
    rests = rest_parts(view.resting, view.withheld, view.at_s)
    where = f"In cluster {view.cluster} now:" if view.cluster else "In your hybrid.yaml:"
    return [*page, text(""), text(where), *rests] if rests else page


def _view(quote: Quote) -> OfferView:
    row = quote.row
    return OfferView(
        provider=row.provider,
        region=row.region,
        zones=row.zones,
        instance_type=row.instance_type,
        market=quote.market.value,
        gpu=row.gpu,
        gpu_count=row.gpu_count,
        gpu_memory_gib=row.gpu_memory_gib,
        vcpu_count=row.vcpu_count,
        memory_gib=row.memory_gib,
        usd_per_hour=quote.price.usd_per_hour,
        usd_per_gpu_hour=quote.usd_per_gpu_hour,
        price_per_hour=row.per_hour(quote.market),
        currency=row.currency,
        is_own=row.is_own,
        source=row.source,
        as_of=row.as_of,
        reason=quote.price.reason,
    )


_HINTS = {
    "no_rate": "For prices in CNY give the rate: --cny-per-usd, or prices.rates in hybrid.yaml.",
    "stale": "Older prices are used with a longer --max-age.",
}
_WHAT: tuple[Column | str, ...] = ("GPUS", "TYPE", "PLACE", "MARKET")


def _offer_table(offers: Sequence[OfferView]) -> Part:
    numbers = ("PRICE", "PER GPU", "VCPUS", "MEMORY")
    columns = (*_WHAT, *(Column(name, is_number=True) for name in numbers), "PRICE OF")
    return table(columns, ((*_what(offer), *_figures(offer)) for offer in offers))


def _refusal_table(offers: Sequence[OfferView]) -> Part:
    columns = (*_WHAT, "REASON", Column("WHY", is_long=True))
    rows = (
        (*_what(offer), offer.reason.code, offer.reason.message) for offer in offers if offer.reason
    )
    return table(columns, rows)


def _what(offer: OfferView) -> Sequence[str]:
    gpus = f"{offer.gpu}:{offer.gpu_count}" if offer.gpu_count else words.NONE
    place = f"{offer.provider}/{offer.region}" if offer.region else offer.provider
    if offer.is_own and offer.zones:
        place += f"/{offer.zones[0]}"
    return (gpus, offer.instance_type, place, offer.market.replace("_", "-"))


def _figures(offer: OfferView) -> Sequence[str]:
    per_gpu = words.rate(offer.usd_per_gpu_hour) if offer.gpu_count else words.NONE
    memory = words.UNKNOWN if offer.memory_gib is None else f"{offer.memory_gib:g}GiB"
    day = "you" if offer.is_own else str(offer.as_of or words.UNKNOWN)
    return (words.rate(offer.usd_per_hour), per_gpu, words.number(offer.vcpu_count), memory, day)


def _count_line(view: OffersView) -> str:
    if not view.offers:
        nothing = "Nothing that fits has a usable price."
        return nothing if view.ineligible_count_by_code else "Nothing fits."
    whole = len(view.offers) + view.more_count
    line = f"{words.count(whole, 'offer')}, the cheapest first"
    if view.more_count:
        line += f"; {view.more_count} more with a larger --limit"
    return f"{line}. List prices of the day shown, without taxes and discounts."


def _refusal_line(view: OffersView) -> str:
    counts = view.ineligible_count_by_code
    kinds = ", ".join(f"{count} {code.replace('_', ' ')}" for code, count in counts.items())
    more = " more" if view.offers else ""
    hint = "" if view.ineligible else "; --all says why"
    return f"{sum(counts.values())}{more} fit but have no usable price: {kinds}{hint}."
