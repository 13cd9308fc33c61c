"""What rests after a failure, and what is no offer, in `status`, `plan` and `offers`."""

from __future__ import annotations

import json

import pytest

from hybrid.core.errors import LedgerError
from hybrid.core.views import OffersView, PlanView, StatusView
from tests.api import canned
from tests.cli.conftest import Lab, Run

OFFERS = ("offers", "--gpus", "A100:8", "--max-age", "36500d")


@pytest.mark.parametrize("words", [("status",), ("plan",), OFFERS], ids=lambda words: words[0])
def test_the_page_says_what_rests_how_far_why_and_until_when(
    lab: Lab, run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hybrid.adapters.clock import SystemClock

    monkeypatch.setattr(SystemClock, "now_s", lambda _clock: canned.NOW_S)

    lines = run(*words).out.splitlines()

    region = next(line for line in lines if line.startswith("region:aws/us-east-1"))
    assert region.split("  ")[0] == "region:aws/us-east-1"
    for part in ("region, 2 offers", "QuotaError", "3x", "in 12m", "more vCPU capacity than your"):
        assert part in region
    over = next(line for line in lines if "CapacityError" in line)
    assert "at the next need" in over
    assert "sold out" in over
    no_offer = next(line for line in lines if "/p4d/spot" in line)
    assert "no_price" in no_offer
    assert "write usd_per_hour" in no_offer


def test_json_has_it_in_all_three(lab: Lab, run: Run) -> None:
    status = StatusView.model_validate_json(run("status", "--json").out)
    plan = PlanView.model_validate_json(run("plan", "--json").out)
    offers = OffersView.model_validate(json.loads(run(*OFFERS, "--json").out))

    assert status.plan.resting == plan.resting == offers.resting == canned.resting()
    assert status.plan.withheld == plan.withheld == offers.withheld == canned.withheld()
    assert offers.cluster == "lab"


def test_offers_need_no_cluster(run: Run) -> None:
    shown = run(*OFFERS, "--json")

    view = OffersView.model_validate(json.loads(shown.out))
    assert (shown.code, shown.err, view.cluster, view.resting) == (0, "", "", ())


def test_a_cluster_that_was_named_must_run(run: Run) -> None:
    shown = run(*OFFERS, "-c", "nope")

    assert shown.code == 3
    assert "'nope' is not running" in shown.err


def test_a_cluster_in_trouble_costs_a_note_only(lab: Lab, run: Run) -> None:
    lab.service.problem = LedgerError("the ledger is gone")

    shown = run(*OFFERS)

    assert shown.code == 0
    assert "A100" in shown.out
    assert "Note: what rests in a running cluster is not shown: " in shown.err


def test_nothing_that_rests_is_no_line(lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = canned.plan().model_copy(update={"resting": (), "withheld": ()})
    monkeypatch.setattr(canned, "plan", lambda: plan)

    for words in (("status",), ("plan",), OFFERS):
        page = run(*words).out
        assert "RESTS" not in page
        assert "NO OFFER" not in page
        assert "In cluster" not in page
