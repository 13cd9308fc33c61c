"""Tests of the price catalog that comes with the program, and of reading one."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from pathlib import Path

import pytest

from hybrid.adapters.catalog import PRICES, SOURCES, load
from hybrid.core.catalog import Catalog, Terms, find, quotes, rank
from hybrid.core.errors import ConfigError
from hybrid.core.gpu_names import named
from hybrid.core.models import Market
from hybrid.core.quantity import GpuRequest

BUILT_S = dt.datetime(2026, 11, 30, tzinfo=dt.UTC).timestamp()
TERMS = Terms(now_s=BUILT_S, is_confirmed_only=True)
HEADER = "provider,region,zones,instance_type,is_confirmed,on_demand_per_hour,source,as_of\n"
SOURCES_HEADER = "source_id,origin,path,licence,as_of\n"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load()


# Copied by hand from the extracts that the file is made of; see docs/prices.md.
@pytest.mark.parametrize(
    ("provider", "region", "instance_type", "market", "usd_per_hour"),
    [
        ("aws", "us-east-1", "p5.48xlarge", Market.ON_DEMAND, 55.04),
        ("aws", "us-east-1", "p4d.24xlarge", Market.ON_DEMAND, 21.957642),
        ("aws", "us-east-1", "g5.xlarge", Market.ON_DEMAND, 1.006),
        ("aws", "us-east-1", "p3.2xlarge", Market.ON_DEMAND, 3.06),
        ("gcp", "us-central1", "a2-highgpu-1g", Market.ON_DEMAND, 3.67339),
        ("gcp", "us-central1", "a2-highgpu-1g", Market.SPOT, 1.92802),
        ("gcp", "us-east5", "a2-ultragpu-8g", Market.SPOT, 14.22278),
        ("gcp", "us-central1", "g4-standard-48", Market.ON_DEMAND, 4.49993),
    ],
)
def test_a_known_price_is_that_of_its_source(
    catalog: Catalog,
    provider: str,
    region: str,
    instance_type: str,
    market: Market,
    usd_per_hour: float,
) -> None:
    judged = catalog.price(provider, region, instance_type, market, TERMS)

    assert judged.usd_per_hour == usd_per_hour


def test_prices_before_the_cuts_of_2025_are_refused_as_stale(catalog: Catalog) -> None:
    judged = catalog.price("aws", "us-west-2", "p5.48xlarge", Market.ON_DEMAND, TERMS)

    assert judged.reason
    assert judged.reason.code == "stale"


def test_a_machine_has_what_its_source_says(catalog: Catalog) -> None:
    inside = catalog.inside("gcp", "a2-ultragpu-8g")

    assert inside
    assert (inside.gpu, inside.gpu_count, inside.gpu_memory_gib) == ("A100-80GB", 8, 80)
    assert (inside.vcpu_count, inside.memory_gib) == (96, 1360)


def test_every_row_has_whole_gpus_a_known_source_and_our_name(catalog: Catalog) -> None:
    sources = {source.source_id: source for source in catalog.sources}

    for row in catalog.rows:
        assert row.gpu_count >= 1
        assert row.gpu == named(row.gpu)
        assert row.as_of == sources[row.source].as_of
        assert row.as_of or row.on_demand_per_hour is row.spot_per_hour is None


def test_every_source_has_a_licence_and_is_used(catalog: Catalog) -> None:
    used = {row.source for row in catalog.rows}

    assert {source.source_id for source in catalog.sources} == used
    assert {source.licence for source in catalog.sources} == {"Apache-2.0", "facts"}


def test_no_type_stands_twice_in_a_region(catalog: Catalog) -> None:
    counts = Counter((row.provider, row.region, row.instance_type) for row in catalog.rows)

    assert max(counts.values()) == 1


def test_prices_of_one_gpu_are_within_reason(catalog: Catalog) -> None:
    """A slip of the decimal point would stand out."""
    for quote in quotes(catalog.rows, TERMS):
        each = quote.usd_per_gpu_hour
        assert each is None or 0.05 < each < 25


def test_what_only_a_price_list_names_is_never_chosen(catalog: Catalog) -> None:
    """Such a region has the lowest H100 spot price of all, and most likely no H100."""
    ranked = rank(quotes(find(catalog.rows, gpus=GpuRequest("H100", 8)), TERMS))

    assert all(quote.row.is_confirmed for quote in ranked if quote.price.usd_per_hour)
    (unsold,) = {q.price.reason.code for q in ranked if q.price.reason and not q.row.is_confirmed}
    assert unsold == "unconfirmed"


def test_baidu_has_no_price_that_could_be_published(catalog: Catalog) -> None:
    (why,) = {
        quote.price.reason.code
        for quote in quotes(find(catalog.rows, infra=["baidu"]), TERMS)
        if quote.price.reason
    }

    assert why == "no_price"


def test_the_file_is_small() -> None:
    folder = Path(__file__).parents[2] / "hybrid" / "catalog"

    assert sum(file.stat().st_size for file in folder.iterdir()) < 400_000


# --- reading -------------------------------------------------------------------------------


def write(folder: Path, rows: str, sources: str = "") -> Path:
    (folder / PRICES).write_text(HEADER + rows, encoding="utf-8")
    (folder / SOURCES).write_text(SOURCES_HEADER + sources, encoding="utf-8")
    return folder


def test_an_empty_cell_is_unknown(tmp_path: Path) -> None:
    (row,) = load(write(tmp_path, "gcp,r,r-a|r-b,t,no,,s,\n")).rows

    assert row.on_demand_per_hour is None
    assert row.as_of is None
    assert row.zones == ("r-a", "r-b")
    assert not row.is_confirmed


def test_odd_prices_are_read_and_judged_later(tmp_path: Path) -> None:
    rows = load(write(tmp_path, "gcp,r,,t,yes,nan,s,\ngcp,r,,u,yes,-1,s,\n")).rows

    assert math.isnan(rows[0].on_demand_per_hour or 0.0)
    assert rows[1].on_demand_per_hour == -1.0


@pytest.mark.parametrize(
    "rows",
    ["gcp,r,,t,perhaps,1,s,\n", "gcp,r,,t,yes,cheap,s,\n", "gcp,r,,t,yes,1,s,2026-13-01\n", '"\n'],
    ids=["not-yes-or-no", "not-a-number", "not-a-date", "open-quote"],
)
def test_a_broken_file_is_a_configuration_error(tmp_path: Path, rows: str) -> None:
    with pytest.raises(ConfigError, match="install this program anew"):
        load(write(tmp_path, rows))


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=str(tmp_path)):
        load(tmp_path)
