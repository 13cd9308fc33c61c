"""Google Cloud: names, labels, settings and offers; nothing here calls anything."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.adapters import catalog
from hybrid.core.models import Market
from hybrid.core.ports import ProviderContext
from hybrid.settings import load, packaged
from providers.gcp import make
from providers.gcp.launching import request_id
from providers.gcp.machines import Knowledge
from providers.gcp.naming import (
    Place,
    decoded,
    decoded_key,
    encoded,
    encoded_key,
    instance_name,
    owned_instance_id,
    token_mark,
)
from providers.gcp.offers import offer_of
from providers.gcp.params import Params, Pool
from tests.emulators.gcp.rules import check_labels
from tests.providers.gcp_cloud import POOL, SETTINGS, ZONE
from tests.world.clock import VirtualClock

# Text that can be written at all: no half of a surrogate pair.
_TEXT = st.text(st.characters(codec="utf-8"))
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


# --- names --------------------------------------------------------------------------------


def test_what_a_token_gives_never_changes() -> None:
    """A release that gave another id would rent every open launch a second time."""
    assert request_id("t-1") == "ed1d5ba4-b40f-524b-b20b-fc4c98a92462"
    assert instance_name("c-1", "i-1", 1) == "hybrid-i-1-a4056886c2e1"
    assert token_mark("t-1") == "46e9bc3476c92ea2"


@given(_TEXT, _TEXT, st.integers(1, 10**6))
def test_every_name_is_one_that_google_takes(cluster: str, instance: str, attempt: int) -> None:
    name = instance_name(cluster, instance, attempt)

    assert _NAME.fullmatch(name)
    assert name.startswith("hybrid-")


@given(_TEXT)
def test_a_label_is_legal_and_comes_back_as_it_was(text: str) -> None:
    value = encoded(text)

    assert re.fullmatch(r"[a-z0-9_-]*", value)
    assert decoded(value) == text
    key = encoded_key(text)
    assert re.fullmatch(r"[a-z][a-z0-9_-]*", key)
    assert decoded_key(key) == text
    if len(key) <= 63:
        assert list(check_labels({key: value[:63]})) == []


def test_ids_as_they_are_used_stay_readable() -> None:
    assert encoded("c-1a2b3c4d") == "c-1a2b3c4d"
    assert encoded_key("hybrid-cluster") == "hybrid-cluster"
    assert instance_name("c-1a2b", "i-77", 1).startswith("hybrid-i-77-")


@pytest.mark.parametrize("value", ["A", "_", "_4", "_4G", "_61", "_ff", "ä", "a b"])
def test_a_label_that_we_never_write_is_not_read(value: str) -> None:
    assert decoded(value) is None


def test_an_owner_is_known_by_labels_and_name_together() -> None:
    labels = {"hybrid-cluster": "c", "hybrid-instance": "i-1", "hybrid-attempt": "2"}
    name = instance_name("c", "i-1", 2)

    assert owned_instance_id(labels, name, cluster_id="c") == "i-1"
    assert owned_instance_id(labels, name, cluster_id="d") is None
    assert owned_instance_id(labels, instance_name("c", "i-1", 1), cluster_id="c") is None
    assert owned_instance_id(labels | {"hybrid-attempt": "x"}, name, cluster_id="c") is None
    assert owned_instance_id({}, name, cluster_id="c") is None


def test_a_member_of_a_gang_is_known_by_its_name_and_that_it_is_one() -> None:
    labels = {"hybrid-cluster": "c", "hybrid-gang": "3", "hybrid-attempt": "2"}
    name = instance_name("c", "i-1-x", 2)

    assert owned_instance_id(labels, name, cluster_id="c") == "i-1-x"
    assert owned_instance_id(labels, name, cluster_id="d") is None
    assert owned_instance_id(labels, instance_name("c", "i-1-x", 1), cluster_id="c") is None
    assert owned_instance_id(labels, instance_name("c", "I-1", 2), cluster_id="c") is None
    assert owned_instance_id(labels, "hybrid-" + name, cluster_id="c") is None
    assert owned_instance_id(labels, "x", cluster_id="c") is None
    del labels["hybrid-gang"]
    assert owned_instance_id(labels, name, cluster_id="c") is None


@pytest.mark.parametrize(
    "text",
    [
        "projects/p/zones/us-central1-a/instances/x",
        "projects/example.com:p/zones/northamerica-northeast1-b/instances/x-1",
        "projects/p/zones/us-central1-ai1a/instances/x",
    ],
)
def test_a_place_is_written_as_it_is_read(text: str) -> None:
    assert str(Place.of(text)) == text


def test_a_mark_does_not_give_its_token_away() -> None:
    assert "secret" not in token_mark("secret")
    assert token_mark("a") != token_mark("b")


# --- settings -----------------------------------------------------------------------------


def test_an_offer_has_all_that_its_pool_says() -> None:
    raw = POOL | {
        "accelerators": "A100:2",
        "use_spot": True,
        "max_nodes": 3,
        "rank": 1,
        "boot_time": "5m",
        "labels": {"rack": "r7"},
    }

    (pool,) = Params.model_validate({**SETTINGS, "pools": [raw]}).pools
    offer = offer_of(pool, "gcp", usd_per_hour=0.85)

    assert offer.offer_id == f"gcp/us-central1/{ZONE}/g2-standard-8/spot"
    assert (offer.region, offer.zone, offer.market) == ("us-central1", ZONE, Market.SPOT)
    assert offer.shape == {"CPU": 8, "GPU": 2, "memory": 32e9, "accelerator_type:A100": 1}
    assert (offer.accelerator, offer.gpu_count) == ("A100", 2)
    assert (offer.max_count, offer.rank, offer.boot_s) == (3, 1, 300.0)
    assert offer.labels == {"rack": "r7"}
    assert offer.stock_count is None  # Google does not say
    assert offer.max_gang == 32


def test_a_machine_without_gpus_is_an_offer_too() -> None:
    raw = {k: v for k, v in POOL.items() if k != "accelerators"}

    (pool,) = Params.model_validate({**SETTINGS, "pools": [raw]}).pools

    assert offer_of(pool, "gcp", usd_per_hour=0.85).shape == {"CPU": 8, "memory": 32e9}


def test_a_pool_takes_after_its_account_where_it_says_nothing() -> None:
    raw: dict[str, Any] = {
        **SETTINGS,
        "network_tags": ["node"],
        "max_life": "12h",
        "pools": [POOL, POOL | {"use_spot": True, "network_tags": [], "max_life": "1h"}],
    }

    first, second = Params.model_validate(raw).pools

    assert (first.network_tags, first.max_life) == (("node",), 43_200.0)
    assert (second.network_tags, second.max_life) == ((), 3_600.0)
    assert first.image == second.image == SETTINGS["image"]


@pytest.mark.parametrize(
    ("changes", "loc", "words"),
    [
        ({"infra": "gcp"}, "infra", "write gcp/REGION/ZONE"),
        ({"infra": "gcp/us-central1"}, "infra", "names no zone"),
        ({"infra": "gcp/us-central1/a"}, "infra", "names no zone"),
        ({"infra": "gcp/us-east1/us-central1-a"}, "infra", "is not in region us-east1"),
        ({"accelerators": "L4x1"}, "accelerators", "write TYPE:COUNT"),
        ({"instance_type": "g2 standard"}, "instance_type", "write for example g2-standard-8"),
        ({"instance_type": None}, "instance_type", "Field required"),
        ({"usd_per_hour": 0}, "usd_per_hour", "greater than 0"),
        ({"usd_per_hour": float("nan")}, "usd_per_hour", ""),
        ({"image": "ubuntu"}, "image", "write for example projects/"),
        ({"labels": {"zone": "x"}}, "labels", "set by this program"),
        ({"max_life": "121d"}, "max_life", "'121d' is too much; write 120d or less"),
        ({"max_life": "1m"}, "max_life", "'1m' is too little; write 10m or more"),
        ({"disk": "1GB"}, "disk", "'1GB' is too little; write 10GiB or more"),
        ({"python": "python; rm -rf /"}, "python", "is not the path of an interpreter"),
        ({"service_account": "me"}, "service_account", "write for example node@"),
        ({"stock": 3}, "stock", "Extra inputs"),
    ],
    ids=str,
)
def test_a_pool_that_is_wrong_is_refused_where_it_is_wrong(
    changes: dict[str, Any], loc: str, words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Params.model_validate({**SETTINGS, "pools": [POOL, POOL | {"use_spot": True} | changes]})

    (error,) = caught.value.errors()
    assert error["loc"] == ("pools", 1, loc)
    assert words in error["msg"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"project": ""}, "project is missing"),
        ({"image": None}, "pool 0 (gcp/us-central1/us-central1-a) has no image"),
        ({"pools": [POOL, POOL]}, "pools 0 and 1 are the same machine type"),
        ({"tags": {"Team": "x"}}, "is not a label of Google Cloud"),
        ({"tags": {"hybrid-cluster": "x"}}, "kept for this program"),
        ({"endpoint_url": "http://10.0.0.1"}, "write https://HOST"),
        ({"endpoint_url": "https://x/compute"}, "write https://HOST"),
        ({"endpoint_url": "ftp://127.0.0.1"}, "write https://HOST"),
        ({"launch_wait": "5m"}, "'5m' is too much; write 1m50s or less"),
    ],
    ids=str,
)
def test_an_account_that_is_wrong_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Params.model_validate({**SETTINGS, "pools": [POOL]} | changes)

    assert words in str(caught.value)


@pytest.mark.parametrize("url", ["", "https://compute-x.p.googleapis.com", "http://127.0.0.1:80/"])
def test_an_endpoint_keeps_tokens_to_google_or_to_this_machine(url: str) -> None:
    params = Params.model_validate(SETTINGS | {"endpoint_url": url})

    assert params.endpoint_url == url.rstrip("/")


def test_an_account_without_pools_is_fine() -> None:
    assert Params.model_validate({}).pools == ()


# --- the catalog --------------------------------------------------------------------------

BARE: dict[str, Any] = {"infra": POOL["infra"], "instance_type": "g2-standard-8"}


def read(pool: dict[str, Any]) -> Pool:
    knowledge = Knowledge(catalog.load())
    return Params.model_validate({**SETTINGS, "pools": [pool]}, context=knowledge).pools[0]


def test_what_a_pool_does_not_say_comes_from_the_catalog() -> None:
    pool = read(BARE)

    assert (pool.accelerators, pool.cpus) == ("L4:1", 8)
    assert pool.memory == int(32 * 2**30 * 0.6)
    assert pool.usd_per_hour is None, "prices grow old, and are judged when offers are made"


def test_a_pool_has_the_last_word() -> None:
    pool = read(BARE | {"cpus": 4, "memory": "1GB", "usd_per_hour": 9, "accelerators": "GPU:1"})

    assert (pool.cpus, pool.memory, pool.usd_per_hour) == (4, 10**9, 9)
    assert pool.accelerators == "GPU:1"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"accelerators": "L4:2"}, "g2-standard-8 has L4:1"),
        ({"accelerators": "A100:1"}, "g2-standard-8 has L4:1"),
    ],
    ids=["count", "gpu"],
)
def test_a_pool_that_contradicts_the_catalog_is_refused(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words) as caught:
        read(BARE | changes)

    assert caught.value.errors()[0]["loc"] == ("pools", 0)


def test_a_gpu_that_is_attached_is_not_in_the_catalog() -> None:
    raw = POOL | {
        "instance_type": "n1-standard-8",
        "attached_gpu": "nvidia-tesla-t4",
        "accelerators": "T4:4",
    }

    assert read(raw).accelerators == "T4:4"


def test_the_example_rents_what_its_comments_say() -> None:
    settings = load(packaged("gcp-burst.yaml"), {"HOME": "/h"})
    at_s = dt.datetime(2026, 11, 30, tzinfo=dt.UTC).timestamp()

    context = ProviderContext(
        cluster_id="c",
        cluster_name="c",
        state_dir="",
        ray_dir="",
        clock=VirtualClock(now_s=at_s),
        catalog=catalog.load(),
    )
    offers = make("gcp", settings.provider_raw("gcp"), context).offers()

    assert [offer.accelerator for offer in offers] == ["A100"] * 3
    assert [offer.market for offer in offers] == [Market.SPOT, Market.SPOT, Market.ON_DEMAND]
    assert [offer.zone[-1] for offer in offers] == ["a", "b", "a"]
    assert offers[0].usd_per_hour < offers[2].usd_per_hour == 3.4


def test_an_attached_gpu_needs_its_number() -> None:
    raw = {k: v for k, v in POOL.items() if k != "accelerators"}

    with pytest.raises(ValidationError, match="does not say how many"):
        Pool.model_validate(raw | {"attached_gpu": "nvidia-tesla-t4"})
