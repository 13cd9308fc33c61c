"""Tests of pools: rules between them, and what their providers are given."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from hybrid.settings import SettingsError
from tests.settings.writing import CLOUD, load_text, problem

MIXED = """
name: a
providers:
  tide: {region: north}
clouds:
  ordered:
    - {infra: tide/north, accelerators: A100:8, use_spot: true, memory: 16GiB}
    - {infra: local, accelerators: GPU:4, usd_per_hour: 2, stock: 3, deep: {on: yes, n: [1, x]}}
    - {infra: tide, usd_per_hour: 1.5}
budget: {usd_per_day: 20}
"""


@pytest.mark.parametrize(
    ("clouds", "message"),
    [
        ("{}", "clouds: there is no pool; list one under any_of or ordered, or remove clouds"),
        ("{any_of: []}", "clouds.any_of: there is no pool"),
        (
            "{any_of: [{infra: local}], ordered: [{infra: local}]}",
            "any_of and ordered are both here; keep any_of (the cheapest that fits wins)",
        ),
        ("{any_of: [{infra: aws/us-east-1}]}", "'aws' is not an installed provider; known are"),
        ("{any_of: [{infra: Local}]}", "'Local' is not a cloud; write PROVIDER, PROVIDER/REGION"),
        ("{any_of: [{infra: local, acclerators: GPU:4}]}", "did you mean accelerators?"),
        ("{any_of: [{infra: local, gpus: 4}]}", "did you mean accelerators?"),
        ("{any_of: [{infra: local, spot: true}]}", "did you mean use_spot?"),
        ("{any_of: [{infra: local, usd_per_hour: 0}]}", "0 is not a price; write dollars per hour"),
        ("{any_of: [{infra: local, use_spot: maybe}]}", "'maybe' is neither true nor false"),
        ("{any_of: [{infra: local, api_key: s3cr3t}]}", "a secret does not belong in this file"),
        ("{any_of: {infra: local}}", "a mapping is not a list; begin each entry below it with"),
        ("any", "clouds: 'any' is not a mapping"),
    ],
)
def test_a_bad_pool_is_refused(tmp_path: Path, clouds: str, message: str) -> None:
    found = problem(tmp_path, f"name: a\nclouds: {clouds}\nbudget: {{nodes: 1}}\n")

    assert message in found
    assert "s3cr3t" not in found


@pytest.mark.parametrize("budget", ["", "budget:", "budget: {nodes: null}"])
def test_renting_without_any_cap_is_refused(tmp_path: Path, budget: str) -> None:
    text = f"name: a\nclouds: {{any_of: [{{infra: local, usd_per_hour: 1}}]}}\n{budget}\n"

    assert "budget: there is no cap, so renting could cost any sum" in problem(tmp_path, text)


def test_no_clouds_need_no_cap(tmp_path: Path) -> None:
    assert load_text(tmp_path, "name: a").caps.node_count is None


def test_caps_are_those_of_the_budget(tmp_path: Path) -> None:
    text = "name: a\nbudget: {nodes: 1, gpus: 2, usd_per_hour: 3, usd_per_day: 4, usd_per_month: 5}"

    caps = load_text(tmp_path, text).caps

    assert tuple(caps.model_dump().values()) == (1, 2, 3.0, 4.0, 5.0)


def test_a_provider_is_given_its_account_and_its_pools_in_the_words_of_the_file(
    tmp_path: Path,
) -> None:
    settings = load_text(tmp_path, MIXED)

    assert settings.provider_names == ("tide", "local")
    assert settings.provider_raw("tide") == {
        "region": "north",
        "pools": [
            {
                "infra": "tide/north",
                "accelerators": "A100:8",
                "use_spot": True,
                "memory": "16GiB",
                "rank": 0,
            },
            {"infra": "tide", "usd_per_hour": 1.5, "rank": 2},
        ],
    }
    assert settings.provider_raw("local")["pools"] == [
        {
            "infra": "local",
            "accelerators": "GPU:4",
            "usd_per_hour": 2.0,
            "stock": 3,
            "deep": {"on": "yes", "n": [1, "x"]},
            "rank": 1,
        }
    ]


def test_ranks_are_equal_when_the_cheapest_wins(tmp_path: Path) -> None:
    text = MIXED.replace("ordered", "any_of")

    pools = load_text(tmp_path, text).provider_raw("tide")["pools"]

    assert [pool["rank"] for pool in pools] == [0, 0]


@pytest.mark.parametrize(
    ("name", "loc", "path"),
    [
        ("tide", ("pools", 1, "stock"), "clouds.ordered[2].stock"),
        ("local", ("pools", 0, "deep", "n", 0), "clouds.ordered[1].deep.n[0]"),
        ("tide", ("region",), "providers.tide.region"),
        ("tide", ("pools",), "clouds.ordered"),
        ("tide", (), "providers.tide"),
        ("tide", ("pools", 9), "clouds.ordered[9]"),
    ],
)
def test_locate_leads_from_a_provider_back_to_the_file(
    tmp_path: Path, name: str, loc: tuple[str | int, ...], path: str
) -> None:
    assert load_text(tmp_path, MIXED).locate(name, loc) == path


class TidePool(BaseModel):
    """What a provider might accept."""

    model_config = ConfigDict(extra="forbid")

    infra: str
    rank: int
    stock: int


class TideParams(BaseModel):
    """What a provider might accept."""

    region: int
    pools: list[TidePool]


def test_a_providers_refusal_is_told_in_terms_of_the_file(tmp_path: Path) -> None:
    settings = load_text(tmp_path, MIXED)
    with pytest.raises(ValidationError) as caught:
        TideParams.model_validate(settings.provider_raw("tide"))

    error = settings.provider_error("tide", caught.value)

    assert isinstance(error, SettingsError)
    lines = str(error).replace(f"{tmp_path}/", "").splitlines()
    assert lines[0].startswith(
        "hybrid.yaml: providers.tide.region: 'north' is not a whole number; write for example 4"
    )
    assert lines[0].endswith("(line 4)")
    assert "hybrid.yaml: clouds.ordered[2].stock: it is missing; add it (line 9)" in lines
    assert "clouds.ordered[0].memory: this key is not known here" in str(error)


def test_a_pool_knows_its_provider_and_its_gpus(tmp_path: Path) -> None:
    clouds = load_text(tmp_path, MIXED).clouds

    assert clouds is not None
    assert [pool.provider for pool in clouds.pools] == ["tide", "local", "tide"]
    assert [pool.gpu_count for pool in clouds.pools] == [8, 4, 0]


def test_a_file_that_came_without_a_provider_names_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nor is any other; install this program with pip"):
        load_text(tmp_path, "name: a\n" + CLOUD, providers=())
