"""`prices:` of hybrid.yaml: rates, overrides, and which of them a pool gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.settings import SettingsError, dump
from tests.settings.writing import load_text

HEAD = "name: lab\nbudget: {nodes: 2}\n"


def text(*overrides: str, rates: str = "{CNY: 7.1}", pool: str = "") -> str:
    pool = pool or "infra: local/r1/z1, instance_type: big, accelerators: A100:8"
    lines = "".join(f"    - {{{override}}}\n" for override in overrides)
    listed = f"  overrides:\n{lines}" if overrides else ""
    return f"{HEAD}clouds:\n  any_of:\n    - {{{pool}}}\nprices:\n  rates: {rates}\n{listed}"


def usd(tmp_path: Path, content: str) -> object:
    (pool,) = load_text(tmp_path, content).provider_raw("local")["pools"]
    return pool.get("usd_per_hour")


@pytest.mark.parametrize("infra", ["local", "local/r1", "local/r1/z1"])
def test_an_override_is_for_all_machines_of_the_type_at_the_place(
    tmp_path: Path, infra: str
) -> None:
    content = text(f"infra: {infra}, instance_type: big, per_hour: 12.5")

    assert usd(tmp_path, content) == 12.5


@pytest.mark.parametrize(
    "override",
    [
        "infra: local/r2, instance_type: big, per_hour: 1",
        "infra: local/r, instance_type: big, per_hour: 1",
        "infra: local, instance_type: small, per_hour: 1",
        "infra: local, instance_type: big, per_hour: 1, use_spot: true",
        "infra: tide, instance_type: big, per_hour: 1",
    ],
)
def test_it_is_for_no_other_machine(tmp_path: Path, override: str) -> None:
    assert usd(tmp_path, text(override)) is None


def test_the_narrowest_wins(tmp_path: Path) -> None:
    overrides = [
        f"infra: {infra}, instance_type: big, per_hour: {price}"
        for infra, price in (("local", 1), ("local/r1/z1", 3), ("local/r1", 2))
    ]

    assert usd(tmp_path, text(*overrides)) == 3


@pytest.mark.parametrize("own", ["usd_per_hour: 9", "cny_per_hour: 63.9"])
def test_the_price_of_a_pool_wins_over_all(tmp_path: Path, own: str) -> None:
    settings = load_text(
        tmp_path,
        text(
            "infra: local, instance_type: big, per_hour: 1",
            pool=f"infra: local, instance_type: big, {own}",
        ),
    )

    (pool,) = settings.provider_raw("local")["pools"]
    assert pool.get("usd_per_hour") == (9 if own.startswith("usd") else None)


def test_another_currency_is_converted_at_the_rate_of_the_file(tmp_path: Path) -> None:
    content = text("infra: local, instance_type: big, per_hour: 71, currency: CNY")

    assert usd(tmp_path, content) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("override", "rates", "says"),
    [
        ("per_hour: 0", "{}", "prices.overrides[0].per_hour: 0 is not a price"),
        ("per_hour: -1", "{}", "prices.overrides[0].per_hour: -1 is not a price"),
        ("per_hour: .nan", "{}", "prices.overrides[0].per_hour: '.nan' is not a number"),
        ("per_hour: .inf", "{}", "prices.overrides[0].per_hour: '.inf' is not a number"),
        ("use_spot: no", "{}", "prices.overrides[0].per_hour: it is missing; add it"),
        (
            "per_hour: 1, currency: CNY",
            "{EUR: 0.9}",
            "prices.overrides[0].currency: there is no rate for CNY; write under prices.rates",
        ),
        ("per_hour: 1, currency: yuan", "{}", "currency: 'yuan' is not a currency; write its"),
        ("per_hour: 1, currency: 7", "{}", "is not a currency; write its code"),
        ("per_hour: 1", "{CNY: 0}", "prices.rates: '0' is not a rate of CNY; write how many"),
        ("per_hour: 1", "{CNY: -7}", "prices.rates: '-7' is not a rate of CNY"),
        ("per_hour: 1", "{CNY: .nan}", "prices.rates: '.nan' is not a rate of CNY"),
        ("per_hour: 1", "{CNY: [7]}", "prices.rates: a list is not a rate of CNY"),
        ("per_hour: 1", "{cny: 7}", "prices.rates: 'cny' is not a currency"),
        ("per_hour: 1", "{USD: 2}", "prices.rates: a US dollar costs one US dollar"),
        ("per_hour: 1", "7.1", "prices.rates: '7.1' is not a mapping"),
        ("per_hour: 1, price: 2", "{}", "the key 'price' is not known"),
    ],
)
def test_what_is_wrong_comes_with_its_place(
    tmp_path: Path, override: str, rates: str, says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_text(tmp_path, text(f"infra: local, instance_type: big, {override}", rates=rates))

    assert says in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_provider_that_is_not_installed_is_refused_here_too(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"prices\.overrides\[0\]\.infra: 'azure' is not an"):
        load_text(tmp_path, text("infra: azure, instance_type: big, per_hour: 1"))


def test_two_prices_for_the_same_machine_are_refused(tmp_path: Path) -> None:
    override = "infra: local, instance_type: big, per_hour: 1"

    with pytest.raises(SettingsError, match=r"prices\.overrides\[1\]: it has the same infra"):
        load_text(tmp_path, text(override, override))


def test_two_rates_for_one_currency_are_refused(tmp_path: Path) -> None:
    account = "providers: {local: {exchange: {cny_per_usd: 7.2}}}\n"

    with pytest.raises(SettingsError) as caught:
        load_text(tmp_path, text() + account)

    assert "providers.local.exchange.cny_per_usd: a US dollar costs 7.2 CNY here and 7.1" in str(
        caught.value
    )
    load_text(tmp_path, text() + account.replace("7.2", "7.1"))


def test_they_are_shown_as_they_are_written(tmp_path: Path) -> None:
    settings = load_text(tmp_path, text("infra: local, instance_type: big, per_hour: 1"))

    assert dump(settings)["prices"] == {
        "rates": {"CNY": 7.1},
        "overrides": [
            {
                "infra": "local",
                "instance_type": "big",
                "use_spot": False,
                "per_hour": 1.0,
                "currency": "USD",
            }
        ],
    }


def test_a_price_above_the_cap_is_told(tmp_path: Path) -> None:
    content = text("infra: local, instance_type: big, per_hour: 50").replace(
        "{nodes: 2}", "{usd_per_hour: 20}"
    )

    assert any(
        "is never rented: budget.usd_per_hour" in w for w in load_text(tmp_path, content).warnings()
    )
