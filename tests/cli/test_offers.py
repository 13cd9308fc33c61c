"""`hybrid offers`, in a pipe. No test depends on the day: prices may be as old as they like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.core.views import OffersView
from tests.cli.conftest import Result, Run
from tests.cli.test_speed import loaded

EVER = ("--max-age", "36500d")
A100 = ("--gpus", "A100:8", *EVER)
HEAD = "name: lab\nbudget: {nodes: 2}\n"


def answer(shown: Result) -> OffersView:
    assert shown.code == 0, shown.err
    return OffersView.model_validate(json.loads(shown.out))


def write(tmp_path: Path, *pools: str, more: str = "") -> None:
    lines = "".join(f"    - {{{pool}}}\n" for pool in pools)
    text = f"{HEAD}{more}clouds:\n  any_of:\n{lines}"
    (tmp_path / "hybrid.yaml").write_text(text, encoding="utf-8")


def test_offers_are_the_cheapest_first_on_one_line_each(run: Run) -> None:
    shown = run("offers", *A100, "--limit", "3")

    head, *rows = shown.out.split("\n\n")[0].splitlines()
    assert shown.code == 0
    assert head.split()[:5] == ["GPUS", "TYPE", "PLACE", "MARKET", "PRICE"]
    assert len(rows) == 3
    assert all(row.startswith("A100-") for row in rows)
    prices = [float(row.split("$")[1].split("/")[0]) for row in rows]
    assert prices == sorted(prices)


def test_offers_say_how_many_more_there_are(run: Run) -> None:
    shown = run("offers", *EVER)

    view = answer(run("offers", *EVER, "--json"))
    assert f"{len(view.offers)} offers, the cheapest first" in shown.out
    assert f"; {len(view.offers) - 20} more with a larger --limit" in shown.out


def test_offers_json_has_the_documented_shape_and_no_limit(run: Run) -> None:
    view = answer(run("offers", *EVER, "--json"))

    assert len(view.offers) > 900
    assert view.more_count == 0
    assert view.ineligible == ()
    assert view.ineligible_count_by_code["no_price"] == 4
    assert {offer.provider for offer in view.offers} == {"aws", "gcp"}
    assert {source.licence for source in view.sources} == {"Apache-2.0"}
    prices = [offer.usd_per_hour or 0.0 for offer in view.offers]
    assert prices == sorted(prices)
    assert all(offer.reason is None for offer in view.offers)


def test_offers_all_ends_with_reasons(run: Run) -> None:
    view = answer(run("offers", *EVER, "--json", "--all"))

    assert len(view.ineligible) == sum(view.ineligible_count_by_code.values())
    assert all(offer.usd_per_hour is None for offer in view.ineligible)
    assert {offer.reason.code for offer in view.ineligible if offer.reason} == set(
        view.ineligible_count_by_code
    )

    shown = run("offers", *EVER, "--all", "--infra", "baidu")
    assert "Nothing that fits has a usable price." in shown.out
    assert "no_price  no on-demand price is known; write yours" in shown.out


@pytest.mark.parametrize(("flag", "market"), [("--spot", "spot"), ("--on-demand", "on_demand")])
def test_offers_of_one_market(run: Run, flag: str, market: str) -> None:
    view = answer(run("offers", *A100, flag, "--json"))

    assert {offer.market for offer in view.offers} == {market}


def test_offers_without_a_spot_price_say_so(run: Run) -> None:
    shown = run("offers", *EVER, "--spot", "--infra", "aws", "--gpus", "L4")

    assert shown.out.startswith("Nothing that fits has a usable price.")
    assert "no price; --all says why" in shown.out


def test_offers_that_are_too_old_are_counted_with_the_way_out(run: Run) -> None:
    shown = run("offers", "--gpus", "A100:8", "--max-age", "1d")

    assert shown.out.startswith("Nothing that fits has a usable price.")
    assert " stale" in shown.out
    assert "Older prices are used with a longer --max-age." in shown.out


def test_offers_by_gpu_prefer_cheap_gpus_in_large_machines(run: Run) -> None:
    view = answer(run("offers", *EVER, "--by-gpu", "--json"))

    each = [offer.usd_per_gpu_hour or 0.0 for offer in view.offers]
    whole = [offer.usd_per_hour or 0.0 for offer in view.offers]
    assert each == sorted(each)
    assert whole != sorted(whole)


def test_just_so_many_gpus_are_meant_unless_nothing_has_just_so_many(run: Run) -> None:
    eight = answer(run("offers", *EVER, "--gpus", "A100:8", "--json"))
    sixteen = answer(run("offers", *EVER, "--gpus", "A100:16", "--json"))
    three = answer(run("offers", *EVER, "--gpus", "A100:3", "--json"))

    assert {offer.gpu_count for offer in eight.offers} == {8}
    assert {offer.gpu_count for offer in sixteen.offers} == {16}
    assert min(offer.gpu_count for offer in three.offers) == 4


def test_a_pool_that_says_what_its_machine_has_is_listed_too(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "infra: local, accelerators: GPU:4, cpus: 16, usd_per_hour: 2.4")

    (offer,) = answer(run("offers", "--infra", "local", "--json")).offers

    assert (offer.instance_type, offer.gpu_count, offer.vcpu_count) == ("as in the pool", 4, 16)
    assert (offer.usd_per_hour, offer.source) == (2.4, "hybrid.yaml: clouds.any_of[0]")


@pytest.mark.parametrize("asked", ["a100", "A100-80GB:8", "H100", "v100", "4090"])
def test_gpus_are_named_as_people_like(run: Run, tmp_path: Path, asked: str) -> None:
    write(
        tmp_path,
        "infra: local/here, instance_type: mine, accelerators: RTX4090:8, usd_per_hour: 3",
    )

    view = answer(run("offers", *EVER, "--gpus", asked, "--json"))

    assert view.offers


def test_places_can_be_several(run: Run) -> None:
    view = answer(run("offers", *EVER, "--json", "--infra", "aws/us-east-1, gcp/us-central1"))

    assert {(offer.provider, offer.region) for offer in view.offers} == {
        ("aws", "us-east-1"),
        ("gcp", "us-central1"),
    }


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--gpus", "H10"], "'H10' is no GPU of the catalog; did you mean H100?"),
        (["--gpus", "A100x8"], "write TYPE:COUNT, for example A100:8"),
        (["--infra", "awss"], "nothing at 'awss'; did you mean aws?"),
        (["--infra", "gcp/us-centrall"], "did you mean gcp/us-central1?"),
        (["--infra", "aws//x"], "'aws//x' is not a cloud"),
        (["--spot", "--on-demand"], "--spot and --on-demand exclude one another"),
        (["--cny-per-usd", "nan"], "nan is not a rate"),
        (["--cny-per-usd", "0"], "0 is not a rate"),
        (["--max-age", "365"], "it has no unit"),
        (["--limit", "0"], "--limit"),
        (["--config", "missing.yaml"], "missing.yaml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_offers_refuse_what_cannot_be_meant(run: Run, words: list[str], says: str) -> None:
    shown = run("offers", *words)

    assert shown.code == 2
    assert says in shown.err
    assert shown.out == ""


# --- prices of one's own: `local` stands for any cloud ---------------------------------------


def test_offers_have_the_prices_of_the_pools_in_hybrid_yaml(run: Run, tmp_path: Path) -> None:
    write(
        tmp_path,
        "infra: local/r1/z1, instance_type: big, accelerators: A100-80G:8, usd_per_hour: 1.5",
        "infra: local/r1, instance_type: big, accelerators: A100:8, usd_per_hour: 1, use_spot: yes",
        "infra: local, accelerators: GPU:4, usd_per_hour: 2.4",
    )

    view = answer(run("offers", *A100, "--infra", "local", "--json"))

    assert [(o.market, o.gpu, o.usd_per_hour, o.source) for o in view.offers] == [
        ("spot", "A100", 1.0, "hybrid.yaml: clouds.any_of[1]"),
        ("on_demand", "A100-80GB", 1.5, "hybrid.yaml: clouds.any_of[0]"),
    ]
    assert all(offer.is_own and offer.as_of is None for offer in view.offers)
    page = run("offers", *A100, "--infra", "local").out
    assert "local/r1/z1" in page
    assert page.splitlines()[1].endswith(" you")


def test_offers_in_cny_need_a_rate(run: Run, tmp_path: Path) -> None:
    pool = "infra: local/bj, instance_type: t, accelerators: A100:8, cny_per_hour: 142"
    write(tmp_path, pool)

    without = run("offers", *A100, "--infra", "local", "--all")
    view = answer(run("offers", *A100, "--infra", "local", "--cny-per-usd", "7.1", "--json"))

    assert "no_rate  the price is in CNY" in without.out
    assert "give the rate: --cny-per-usd" in without.out
    (offer,) = view.offers
    assert offer.usd_per_hour == pytest.approx(20.0)
    assert (offer.price_per_hour, offer.currency) == (142.0, "CNY")
    assert view.rates == {"CNY": 7.1}


def test_offers_take_the_rate_of_the_file_unless_one_is_given(run: Run, tmp_path: Path) -> None:
    write(
        tmp_path,
        "infra: local/bj, instance_type: t, accelerators: A100:8, cny_per_hour: 142",
        more="providers: {local: {exchange: {cny_per_usd: 7.1}}}\n",
    )

    of_file = answer(run("offers", *A100, "--infra", "local", "--json"))
    given = answer(run("offers", *A100, "--infra", "local", "--json", "--cny-per-usd", "14.2"))

    assert of_file.offers[0].usd_per_hour == pytest.approx(20.0)
    assert given.offers[0].usd_per_hour == pytest.approx(10.0)


@pytest.mark.parametrize("rate", ["text", "true", "-7", ".nan", "0"])
def test_offers_ignore_a_rate_that_is_none(run: Run, tmp_path: Path, rate: str) -> None:
    write(
        tmp_path,
        "infra: local/bj, instance_type: t, accelerators: A100:8, cny_per_hour: 142",
        more=f"providers: {{local: {{exchange: {{cny_per_usd: {rate}}}}}}}\n",
    )

    view = answer(run("offers", *A100, "--infra", "local", "--json"))

    assert view.ineligible_count_by_code == {"no_rate": 1}


def test_offers_work_while_the_file_is_being_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hybrid.yaml").write_text("name: Lab\n", encoding="utf-8")

    shown = run("offers", *A100)
    named = run("offers", *A100, "--config", "hybrid.yaml")

    assert shown.code == 0
    assert "A100" in shown.out
    assert shown.err.startswith("Note: prices in hybrid.yaml are left out")
    assert named.code == 2
    assert "hybrid.yaml: name" in named.err


def test_offers_need_no_cluster_and_load_no_cloud_sdk(
    environment: dict[str, str], home: Path
) -> None:
    heavy, code = loaded(["offers", *A100, "--json"], environment).split("|")

    assert set(heavy.split(",")) <= {"pydantic", "yaml"}
    assert code == "0"
