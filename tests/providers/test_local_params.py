"""What the configuration may say about the local cloud."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from pydantic import ValidationError

from hybrid.core.models import Market
from providers.local import LocalProvider, make
from providers.local.params import Params
from tests.providers.local_cloud import POOL, LocalCloud


def test_the_entry_point_makes_the_provider(cloud: LocalCloud) -> None:
    entry = EntryPoint("local", "providers.local:make", "hybrid.providers")
    context = cloud.provider()._context

    provider = entry.load()("local", {"pools": [POOL | {"stock": 2}]}, context)

    assert isinstance(provider, LocalProvider)
    assert provider.offers()[0].stock_count == 2
    assert make("x", {}, context).offers() == []


def test_an_offer_has_all_that_its_pool_says() -> None:
    raw = POOL | {
        "infra": "local/lab/room-1",
        "accelerators": "A100:2",
        "cpus": 8,
        "memory": "16GiB",
        "use_spot": True,
        "max_nodes": 3,
        "rank": 1,
        "boot_delay": "20s",
        "labels": {"rack": "r7"},
    }

    (pool,) = Params.model_validate({"pools": [raw]}).pools
    offer = pool.offer("local")

    assert offer.offer_id == "local/lab/room-1/A100x2-cpux8/spot"
    assert (offer.region, offer.zone, offer.market) == ("lab", "room-1", Market.SPOT)
    assert offer.shape == {"CPU": 8, "GPU": 2, "memory": 16 * 2**30, "accelerator_type:A100": 1}
    assert (offer.accelerator, offer.gpu_count) == ("A100", 2)
    assert (offer.max_count, offer.rank, offer.boot_s) == (3, 1, 30.0)
    assert offer.labels == {"rack": "r7"}


@pytest.mark.parametrize(
    ("changes", "loc", "words"),
    [
        ({"accelerators": "A100x8"}, ("pools", 0, "accelerators"), "write TYPE:COUNT"),
        ({"boot_delay": "5"}, ("pools", 0, "boot_delay"), "it has no unit"),
        ({"usd_per_hour": 0}, ("pools", 0, "usd_per_hour"), "greater than 0"),
        ({"usd_per_hour": float("nan")}, ("pools", 0, "usd_per_hour"), ""),
        ({"stock": -1}, ("pools", 0, "stock"), "greater than or equal to 0"),
        ({"memory": "2 gigs"}, ("pools", 0, "memory"), "is not a size"),
        ({"stok": 1}, ("pools", 0, "stok"), "Extra inputs are not permitted"),
        ({"fail": {"never_join": True}}, ("pools", 0, "fail", "never_join"), "Extra inputs"),
        ({"labels": {"site": "x"}}, ("pools", 0, "labels"), "label site is set by this program"),
    ],
)
def test_a_wrong_pool_is_refused_at_its_place(
    changes: dict[str, object], loc: tuple[object, ...], words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Params.model_validate({"pools": [POOL | changes]})

    (error,) = caught.value.errors()
    assert error["loc"] == loc
    assert words in error["msg"]


def test_two_pools_of_the_same_kind_need_names_of_their_own() -> None:
    twice = [POOL, POOL | {"usd_per_hour": 3.0}]

    with pytest.raises(ValidationError, match="pools 0 and 1 are the same kind"):
        Params.model_validate({"pools": twice})
    named = Params.model_validate({"pools": [POOL, POOL | {"instance_type": "dear"}]})

    assert [pool.offer("local").instance_type for pool in named.pools] == ["gpux4-cpux4", "dear"]


def test_the_provider_imports_no_part_of_hybrid_but_core() -> None:
    code = (
        "import sys, providers.local\n"
        "print(sorted(n for n in sys.modules if n.startswith('hybrid.') "
        "and not n.startswith('hybrid.core')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path.cwd()
    )

    assert done.stdout.strip() == "[]"
