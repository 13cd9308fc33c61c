"""Work whose data has to be shipped."""

from __future__ import annotations

from typing import Any

from hybrid.core.models import Market
from tests.core.policy.jobs.make import MAX_WAIT_S, actions, by_size, cluster, job, plan

FULL = job("full", 8, on="h0", ran_s=60)


def planned(waited_s: float = 30, rate: float | None = 1 / 6_000, **data: Any) -> list[str]:
    waiting = job("a", 1, waited_s=waited_s, **data)
    return plan(cluster(waiting, FULL, home_release_gpus_per_s=rate))


def test_a_job_whose_data_ships_longer_than_home_needs_waits_until_its_last_moment() -> None:
    assert planned(data_s=5_999) == ["launch x1"]
    assert planned(data_s=6_001) == []
    assert planned(data_s=6_001, waited_s=MAX_WAIT_S) == ["launch x1"]
    assert planned(data_s=6_001, rate=None) == ["launch x1"]


def test_data_that_nobody_knows_the_time_of_goes_out_at_the_last_moment_only() -> None:
    assert planned(data_s=None) == []
    assert planned(data_s=None, rate=None) == []
    assert planned(data_s=None, waited_s=MAX_WAIT_S) == ["launch x1"]


def test_the_reason_of_a_launch_says_what_its_data_costs() -> None:
    waiting = job("a", 1, waited_s=30, data_s=120, data_usd=4.5)
    (launch,) = actions(cluster(waiting, FULL))
    assert launch.reason.message.endswith("home has no room; its data takes 120 s to ship")
    assert (launch.reason.facts["data_s"], launch.reason.facts["data_usd"]) == (120, 4.5)


def test_a_spot_machine_must_also_pay_for_shipping_the_data_again() -> None:
    spot = by_size(4).model_copy(
        update={"offer_id": "spot4", "market": Market.SPOT, "usd_per_hour": 6.0}
    )

    def chosen(usd: float) -> list[str]:
        waiting = job("a", 4, waited_s=30, data_usd=usd)
        return plan(cluster(waiting, FULL, offers=(by_size(4), spot)))

    # Taken back once in 6 h on average: $60 each time are $10 an hour more.
    assert chosen(0.0) == ["launch spot4"]
    assert chosen(60.0) == ["launch x4"]
