"""`hybrid offers`: what the clouds rent and what it costs, from the catalog, without a cluster."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.market import of_cluster, of_file
from hybrid.cli.options import Cluster, duration_option, is_gpus, seconds

if TYPE_CHECKING:
    from hybrid.core.catalog import CatalogRow, Quote, RankBy
    from hybrid.core.models import Market
    from hybrid.core.prices import Terms
    from hybrid.core.quantity import GpuRequest
    from hybrid.settings import Settings

_SHOWN_COUNT = 20


def _is_rate(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"{value:g} is not a rate; write for example 7.1")
    return value


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("offers")(offers)


def offers(
    context: typer.Context,
    gpus: Annotated[
        str,
        typer.Option(
            "--gpus",
            metavar="TYPE:COUNT",
            help="GPUs of one machine, such as A100:8 or GPU:4; if none has just so many, more.",
            callback=is_gpus,
            show_default=False,
        ),
    ] = "",
    infra: Annotated[
        str,
        typer.Option(
            "--infra",
            metavar="PLACES",
            help="Where, such as aws,gcp/us-central1.",
            show_default=False,
        ),
    ] = "",
    spot: Annotated[bool, typer.Option("--spot", help="Spot prices only.")] = False,
    on_demand: Annotated[bool, typer.Option("--on-demand", help="On-demand prices only.")] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="All of them, also without a usable price, and why.")
    ] = False,
    by_gpu: Annotated[
        bool, typer.Option("--by-gpu", help="Rank by the price of a GPU, not of a machine.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=1,
            help=f"At most so many; {_SHOWN_COUNT} on a page.",
            show_default=False,
        ),
    ] = None,
    max_age: Annotated[
        str, duration_option("--max-age", help="Do not use older prices.", default="365d")
    ] = "365d",
    cny_per_usd: Annotated[
        float | None,
        typer.Option(
            "--cny-per-usd",
            metavar="RATE",
            help="For prices in CNY; or prices.rates in hybrid.yaml.",
            callback=_is_rate,
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Whose pools have prices of yours; found as by `hybrid up`.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON. See docs/json.md.")] = False,
    _cluster: Cluster = "",
) -> None:
    """Rank what the clouds rent by price, from price lists, without asking the clouds.

    With a running cluster, also what rests in it after a failure, and what it cannot rent now.
    """
    from hybrid.adapters import catalog as shipped
    from hybrid.adapters.clock import SystemClock
    from hybrid.cli import own_prices
    from hybrid.cli.offers_page import offers_page, offers_view
    from hybrid.core.catalog import with_own_prices
    from hybrid.core.gpu_names import request
    from hybrid.core.models import Market
    from hybrid.core.prices import Terms

    if spot and on_demand:
        raise typer.BadParameter("--spot and --on-demand exclude one another; drop both for all")
    settings, catalog = _settings(config), shipped.load()
    rates = own_prices.rates(settings) if settings else {}
    if cny_per_usd is not None:
        rates = {"CNY": cny_per_usd}
    clock = SystemClock()
    terms = Terms(
        now_s=clock.now_s(),
        max_age_s=seconds(max_age) or 0.0,
        rates=rates,
        is_confirmed_only=True,
    )
    market = Market.SPOT if spot else Market.ON_DEMAND if on_demand else None
    found = _ranked(
        with_own_prices(
            catalog.rows, own_prices.prices(settings, catalog.rows) if settings else ()
        ),
        gpus=request(gpus) if gpus else None,
        infra=infra,
        market=market,
        terms=terms,
        by="gpu" if by_gpu else "hour",
    )
    limit = limit or (None if json or show_all else _SHOWN_COUNT)
    view = offers_view(found, catalog.sources, terms, limit=limit, is_all=show_all)
    own = of_cluster(context) or of_file(settings, clock)
    view = view.model_copy(update=dict(own))
    if json:
        output.write(view.model_dump_json().encode())
    else:
        output.show(*offers_page(view))


def _settings(file: Path | None) -> Settings | None:
    """Return the settings; `None` for a file that nobody named and that is not right yet.

    Prices are looked up to write that file, so it may be unfinished.
    """
    from hybrid.cli.config import load
    from hybrid.settings import SettingsError

    try:
        return load(file)
    except SettingsError as error:
        if file is not None:
            raise
        output.say(
            f"Note: prices in {error.source} are left out, since `hybrid config validate` has "
            "something to say about it."
        )
        return None


def _ranked(
    rows: tuple[CatalogRow, ...],
    *,
    gpus: GpuRequest | None,
    infra: str,
    market: Market | None,
    terms: Terms,
    by: RankBy,
) -> tuple[Quote, ...]:
    from hybrid.core.catalog import find, quotes, rank
    from hybrid.settings import words

    try:
        places = [words.infra(place.strip()) for place in infra.split(",") if place.strip()]
        fitting = find(rows, gpus=gpus, infra=places)
    except ValueError as error:
        raise StopError(str(error), ExitCode.USAGE) from None
    exact = [row for row in fitting if gpus is not None and row.gpu_count == gpus.count]
    return rank(quotes(exact or fitting, terms, market=market), by=by)
