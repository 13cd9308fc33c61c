"""What the configuration may say about AWS; no SDK is needed to check it."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from pydantic import ValidationError

from hybrid.core.catalog import Catalog, CatalogRow
from providers.aws import make
from providers.aws.machines import Knowledge
from providers.aws.params import Params, Pool

IMAGE = "ami-0123456789abcdef0"
SUBNETS = {"us-east-1a": "subnet-0123abcd", "us-east-1b": "subnet-4567abcd"}
POOL: dict[str, Any] = {
    "infra": "aws/us-east-1/us-east-1a",
    "instance_type": "p5.48xlarge",
    "accelerators": "H100:8",
    "usd_per_hour": 55.04,
}
RAW: dict[str, Any] = {
    "pools": [POOL],
    "regions": {"us-east-1": {"image": IMAGE, "subnets": SUBNETS}},
}


def region(**changes: object) -> dict[str, Any]:
    return {"regions": {"us-east-1": RAW["regions"]["us-east-1"] | changes}}


def test_the_entry_point_leads_to_make() -> None:
    assert EntryPoint("aws", "providers.aws:make", "hybrid.providers").load() is make


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"infra": "aws/us-east-1"},
        {"infra": "aws/us-west-2/us-west-2-lax-1a", "image": IMAGE},
        {"infra": "aws/us-gov-west-1/us-gov-west-1b", "image": "ssm:/ml/ami"},
        {"infra": "aws/cn-north-1/cn-north-1a", "image": IMAGE},
        {"infra": "aws/cn-north-1/cn-north-1a", "image": IMAGE, "usd_per_hour": None},
        {"usd_per_hour": None},
        {"use_spot": True, "usd_per_hour": None},
        {"use_spot": True, "usd_per_hour": None, "spot_limit_usd_per_hour": 20.0},
        {"instance_type": "p6-b200.48xlarge"},
        {"instance_type": "m7i.metal-24xl", "accelerators": None},
    ],
)
def test_a_pool_can_be_like_this(changes: dict[str, object]) -> None:
    (pool,) = Params.model_validate(RAW | {"pools": [POOL | changes]}).pools

    assert pool.region == str(pool.infra).split("/")[1]


@pytest.mark.parametrize(
    ("changes", "loc", "words"),
    [
        ({"infra": "aws"}, ("infra",), "write PROVIDER/REGION"),
        ({"infra": "aws/us-east-1a"}, ("infra",), "write PROVIDER/REGION"),
        ({"infra": "aws/us-east-1/us-west-2a"}, ("infra",), "write PROVIDER/REGION"),
        ({"infra": "aws/US-EAST-1"}, ("infra",), "write PROVIDER/REGION"),
        ({"instance_type": "p5"}, ("instance_type",), "write for example p5.48xlarge"),
        ({"accelerators": "H100x8"}, ("accelerators",), "write TYPE:COUNT"),
        ({"usd_per_hour": 0}, ("usd_per_hour",), "greater than 0"),
        ({"usd_per_hour": float("nan")}, ("usd_per_hour",), "finite"),
        ({"spot_limit_usd_per_hour": 60.0}, (), "is for spot pools"),
        ({"infra": "aws/cn-north-1", "use_spot": True, "usd_per_hour": None}, (), "in CNY"),
        ({"infra": "aws/cn-north-1", "use_spot": True, "spot_limit_usd_per_hour": 1}, (), "in CNY"),
        ({"image": "ubuntu-22.04"}, ("image",), "write for example ami-"),
        ({"image": "ssm:ml"}, ("image",), "ssm:/NAME/OF/PARAMETER"),
        ({"disk": "8MB"}, ("disk",), "'8MB' is too little; write 1GiB or more"),
        ({"labels": {"site": "x"}}, ("labels",), "label site is set by this program"),
        ({"subnet": "subnet-1"}, ("subnet",), "Extra inputs are not permitted"),
    ],
)
def test_a_wrong_pool_is_refused_at_its_place(
    changes: dict[str, object], loc: tuple[object, ...], words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Params.model_validate(RAW | {"pools": [POOL | changes]})

    (error,) = caught.value.errors()
    assert error["loc"] == ("pools", 0, *loc)
    assert words in error["msg"]


# --- with the catalog -------------------------------------------------------------------------


ROW = CatalogRow(
    provider="aws",
    region="us-east-1",
    instance_type="p5.48xlarge",
    gpu="H100",
    gpu_count=8,
    vcpu_count=192,
    memory_gib=2048,
    on_demand_per_hour=55.04,
    source="s",
    as_of=dt.date(2026, 7, 20),
)
BARE = {"infra": "aws/us-east-1/us-east-1a", "instance_type": "p5.48xlarge"}


def known(pool: dict[str, Any], *rows: CatalogRow) -> Pool:
    knowledge = Knowledge(Catalog(rows=rows or (ROW,)))
    return Params.model_validate(RAW | {"pools": [pool]}, context=knowledge).pools[0]


def test_the_catalog_says_what_a_pool_leaves_out() -> None:
    pool = known(BARE)

    assert (pool.accelerators, pool.cpus) == ("H100:8", 192)
    assert pool.usd_per_hour is None, "prices grow old, and are judged when offers are made"
    assert pool.memory == int(2048 * 2**30 * 0.6)


def test_what_a_pool_says_wins_over_the_catalog() -> None:
    pool = known(BARE | {"usd_per_hour": 30.0, "cpus": 96, "memory": "1TiB"})

    assert (pool.usd_per_hour, pool.cpus, pool.memory) == (30.0, 96, 2**40)


@pytest.mark.parametrize("accelerators", ["H100:4", "A100:8"])
def test_a_pool_that_contradicts_the_catalog_is_refused(accelerators: str) -> None:
    with pytest.raises(ValidationError) as caught:
        known(BARE | {"accelerators": accelerators})

    (error,) = caught.value.errors()
    assert error["loc"] == ("pools", 0)
    assert "p5.48xlarge has H100:8" in error["msg"]


# --- the account ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "loc", "words"),
    [
        ({"endpoint_url": "http://example.com"}, ("endpoint_url",), "in the clear"),
        ({"tags": {"a/b": "c"}}, ("tags",), "write up to 128 letters"),
        ({"tags": {"aws:x": "c"}}, ("tags",), "not beginning with aws:"),
        ({"tags": {"hybrid-cluster": "c"}}, ("tags",), "hybrid-"),
        ({"tags": {"a": "c" * 257}}, ("tags",), "up to 256"),
        ({"python": "python"}, ("python",), "is not the path of an interpreter"),
        ({"regions": {"east": {}}, "pools": []}, ("regions",), "'east' is not a region"),
        (region(subnets={"us-west-2a": "subnet-0123abcd"}), ("regions",), "not a zone of us-east"),
        (region(subnets={"us-east-1": "subnet-0123abcd"}), ("regions",), "not a zone of us-east"),
        (region(image=None), (), "pool 0 has no image"),
        (region(subnets={}) | {"pools": [POOL | {"infra": "aws/us-east-1"}]}, (), "all zones"),
        ({"pools": [POOL, POOL]}, (), "pools 0 and 1 are the same type at the same place"),
        ({"access_key": "x"}, ("access_key",), "Extra inputs are not permitted"),
    ],
)
def test_wrong_account_settings_are_refused(
    raw: dict[str, object], loc: tuple[object, ...], words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Params.model_validate(RAW | raw)

    (error,) = caught.value.errors()
    assert error["loc"] == loc
    assert words in error["msg"]


@pytest.mark.parametrize("url", ["https://ec2.example.com", "http://127.0.0.1:4999", None])
def test_an_endpoint_is_encrypted_or_on_this_machine(url: str | None) -> None:
    assert Params.model_validate(RAW | {"endpoint_url": url}).endpoint_url == url


def test_checking_a_configuration_loads_no_sdk() -> None:
    script = (
        "import sys, providers.aws.params, providers.aws; "
        "print(*sorted({'boto3', 'botocore', 'moto'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert (done.returncode, done.stdout.strip()) == (0, "")
