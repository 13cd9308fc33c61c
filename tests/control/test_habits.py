"""What the controller learns of days and of zones: the pace of money, and machines taken back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hybrid.control.book import Book
from hybrid.control.observe import Change
from hybrid.control.pace import Pace
from hybrid.control.takebacks import Takebacks
from hybrid.core.cost import DAY_S, HOUR_S
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Caps, Instance, InstanceState, Market, Reason, Spend
from tests.core.make import NOW_S, make_instance, make_offer

RUNNING, DRAINING = InstanceState.RUNNING, InstanceState.DRAINING
TODAY_S = NOW_S // DAY_S * DAY_S


def machine(*, market: Market = Market.SPOT, zone: str = "z", **changes: Any) -> Instance:
    offer = make_offer().model_copy(update={"market": market, "region": "r", "zone": zone})
    return make_instance("i", offer=offer).model_copy(update={"state_at_s": NOW_S, **changes})


def learnt(*changes: Change) -> dict[str, float]:
    takebacks = Takebacks()
    for change in changes:
        takebacks.learn(change)
    return dict(takebacks.by_zone(NOW_S))


def test_a_running_spot_machine_that_goes_by_itself_was_taken_back() -> None:
    before = machine(state=RUNNING)
    key = f"zone:{before.offer.provider}/r/z"
    for fact in (Fact.DRAIN_STARTED, Fact.MISSING, Fact.GONE):
        assert learnt(Change(before, machine(state=DRAINING), fact)) == {key: 1.0}


def test_machines_on_demand_boots_and_our_own_drains_are_none() -> None:
    on_demand = machine(market=Market.ON_DEMAND, state=RUNNING)
    booting = machine(state=InstanceState.BOOTING)
    ours = machine(state=DRAINING)
    assert learnt(Change(on_demand, on_demand, Fact.GONE)) == {}
    assert learnt(Change(booting, booting, Fact.GONE)) == {}
    # Ended by us: it was draining before it was gone.
    assert learnt(Change(ours, ours, Fact.GONE)) == {}


def test_a_day_later_it_counts_half_and_the_ledger_remembers() -> None:
    takebacks = Takebacks()
    interrupted = Reason(code="interrupted", message="its cloud takes it back")
    takebacks.remember(machine(drain_reason=interrupted, ended_at_s=NOW_S - DAY_S))
    takebacks.remember(machine(drain_reason=Reason(code="idle", message="idle")))
    assert list(takebacks.by_zone(NOW_S).values()) == [pytest.approx(0.5)]
    assert takebacks.by_zone(NOW_S + 30 * DAY_S) == {}


class Shelf:
    """A ledger that counts how often it is asked for spends."""

    def __init__(self, *spends: Spend) -> None:
        self.kept, self.asked = spends, 0

    def spends(self, *, since_s: float) -> list[Spend]:
        self.asked += 1
        return [spend for spend in self.kept if spend.to_s > since_s]


def spend(age_days: int) -> Spend:
    from_s = TODAY_S - age_days * DAY_S
    return Spend(
        instance_id=f"i-{age_days}",
        provider="p",
        offer_id="o",
        reason_code="job_waits",
        from_s=from_s,
        to_s=from_s + 12 * HOUR_S,
        gpu_count=1,
        usd=10.0,
    )


def pace(shelf: Shelf, caps: Caps, *live: Instance) -> Pace:
    return Pace(cast("Book", SimpleNamespace(ledger=shelf, all=lambda: live)), caps)


def test_the_usual_share_is_that_of_the_booked_days_and_read_once_an_hour() -> None:
    shelf = Shelf(spend(1), spend(2), spend(3))
    made = pace(shelf, Caps(usd_per_day=100.0))
    assert made.usual_share(TODAY_S + 6 * HOUR_S) == pytest.approx(0.5)
    assert made.usual_share(TODAY_S + 6.5 * HOUR_S) == pytest.approx(6.5 / 12)
    assert shelf.asked == 1
    assert made.usual_share(TODAY_S + 20 * HOUR_S) == pytest.approx(1.0)
    assert shelf.asked == 2


def test_what_still_runs_counts_for_the_days_behind_it() -> None:
    shelf = Shelf(spend(1), spend(2))
    assert pace(shelf, Caps(usd_per_day=100.0)).usual_share(TODAY_S) is None
    old = machine(created_at_s=TODAY_S - 4 * DAY_S, state=RUNNING)
    assert pace(shelf, Caps(usd_per_day=100.0), old).usual_share(TODAY_S) == pytest.approx(0.0)


def test_without_a_daily_cap_nothing_is_read() -> None:
    shelf = Shelf(spend(1), spend(2), spend(3))
    assert pace(shelf, Caps(usd_per_month=100.0)).usual_share(TODAY_S + HOUR_S) is None
    assert shelf.asked == 0
