"""`prices:` of hybrid.yaml is the same for `offers`, `plan --offline` and the controller."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.app.makers import make_providers
from hybrid.core.offline import OfflinePlanView
from hybrid.core.views import OffersView
from hybrid.settings import load
from tests.cli.conftest import Run

FILE = """\
name: lab
providers:
  aws:
    regions:
      us-east-1:
        image: ami-0123456789abcdef0
        subnets: {us-east-1a: subnet-0123456789abcdef0}
      eu-north-1:
        image: ami-0123456789abcdef0
clouds:
  any_of:
    - {infra: aws/us-east-1/us-east-1a, instance_type: g5.12xlarge}
    - {infra: aws/us-east-1, instance_type: g5.12xlarge, use_spot: true}
    - {infra: aws/eu-north-1/eu-north-1a, instance_type: g5.12xlarge}
    - {infra: aws/eu-north-1/eu-north-1b, instance_type: g5.12xlarge, usd_per_hour: 9}
budget: {nodes: 9}
prices:
  rates: {CNY: 7.1}
  overrides:
    - {infra: aws, instance_type: g5.12xlarge, per_hour: 4}
    - {infra: aws/us-east-1, instance_type: g5.12xlarge, per_hour: 21.3, currency: CNY}
    - {infra: aws, instance_type: g5.12xlarge, use_spot: true, per_hour: 2}
"""
PRICES = {
    "aws/us-east-1/us-east-1a/g5.12xlarge/on_demand": (3.0, "prices.overrides[1]"),
    "aws/us-east-1/g5.12xlarge/spot": (2.0, "prices.overrides[2]"),
    "aws/eu-north-1/eu-north-1a/g5.12xlarge/on_demand": (4.0, "prices.overrides[0]"),
    "aws/eu-north-1/eu-north-1b/g5.12xlarge/on_demand": (9.0, "clouds.any_of[3]"),
}
"""Where every price comes from. That of eu-north-1 in the list is too old to be used at all."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "hybrid.yaml").write_text(FILE)
    return tmp_path / "hybrid.yaml"


def test_the_controllers_adapter_gets_them(file: Path, tmp_path: Path) -> None:
    settings = load(file, {"HOME": "/h"})

    made = make_providers(
        settings, tmp_path / "p", tmp_path / "r", cluster_id="c", clock=SystemClock()
    )

    # With a price for the spot pool too, no call is needed.
    found = {offer.offer_id: offer.usd_per_hour for offer in made["aws"].offers()}
    assert found == pytest.approx({name: usd for name, (usd, _) in PRICES.items()})


def test_the_offline_plan_has_them_with_their_place(file: Path, run: Run) -> None:
    shown = run("plan", "--offline", "--gpus", "A10G:4", "--count", "2", "--json")

    view = OfflinePlanView.model_validate(json.loads(shown.out))
    pools = [*(item.pool for item in view.rented), *(item.pool for item in view.spared)]
    assert {pool.offer_id: pool.price_source for pool in pools} == {
        name: where for name, (_, where) in PRICES.items()
    }
    assert [pool.usd_per_hour for pool in pools] == pytest.approx(
        [PRICES[pool.offer_id][0] for pool in pools]
    )
    assert all(pool.is_own_price for pool in pools)


def test_offers_rank_by_them(file: Path, run: Run) -> None:
    shown = run("offers", "--gpus", "A10G:4", "--infra", "aws/us-east-1,aws/eu-north-1", "--json")

    view = OffersView.model_validate(json.loads(shown.out))
    own: dict[object, object] = {
        (o.region, o.zones, o.market): (o.usd_per_hour, o.source.partition(": ")[2])
        for o in view.offers
        if o.is_own and o.instance_type == "g5.12xlarge"
    }
    assert own[("us-east-1", (), "on_demand")] == (pytest.approx(3.0), "prices.overrides[1]")
    assert own[("us-east-1", (), "spot")] == (2.0, "prices.overrides[2]")
    assert own[("eu-north-1", (), "on_demand")] == (4.0, "prices.overrides[0]")
    assert own[("eu-north-1", ("eu-north-1b",), "on_demand")] == (9.0, "clouds.any_of[3]")
    assert view.offers[0].usd_per_hour == 2.0
    assert view.rates == {"CNY": 7.1}


def test_a_type_that_no_list_has_can_be_priced(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hybrid.yaml").write_text(
        "name: lab\nprices:\n  overrides:\n"
        "    - {infra: baidu/bj, instance_type: bcc.gn5.new, per_hour: 3}\n"
    )

    view = OffersView.model_validate(json.loads(run("offers", "--infra", "baidu", "--json").out))

    assert [(o.instance_type, o.usd_per_hour) for o in view.offers] == [("bcc.gn5.new", 3.0)]


@pytest.mark.parametrize("words", [("plan", "--offline"), ("config", "validate"), ("up",)])
def test_a_price_that_is_none_is_refused_everywhere(
    run: Run, file: Path, words: tuple[str, ...]
) -> None:
    file.write_text(FILE.replace("per_hour: 4}", "per_hour: .nan}"))

    shown = run(*words)

    assert shown.code == 2
    assert "prices.overrides[0].per_hour: '.nan' is not a number" in shown.err
