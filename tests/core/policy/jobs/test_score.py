"""Tests of what offers cost for a job, spot machines and shipped data included."""

from __future__ import annotations

import math
from typing import Any

from hybrid.core.models import Market, Offer
from hybrid.core.models.work import Checkpoint, JobView
from hybrid.core.policy.jobs.params import JobParams
from hybrid.core.policy.jobs.score import spot_surcharge
from tests.core.policy.jobs.make import TRIP_S, by_size, cluster, job, plan

FULL = job("full", 8, on="h0", ran_s=60)
HOUR_S = 3_600.0


def spot(usd: float) -> Offer:
    changes = {"offer_id": "spot4", "market": Market.SPOT, "usd_per_hour": usd}
    return by_size(4).model_copy(update=changes)


def rented(waiting: JobView, usd: float) -> list[str]:
    return plan(cluster(waiting, FULL, offers=(by_size(4), spot(usd))))


def test_the_surcharge_is_that_of_saving_as_often_as_is_best() -> None:
    # Every 1,610 s: 60 s to save, half of it lost once in 6 h, and 90 s to load then.
    every_s = math.sqrt(2 * 60 * 21_600)
    expected = 1 + 60 / every_s + every_s / (2 * 21_600) + 90 / 21_600
    assert spot_surcharge(60, 90, JobParams()) == expected
    assert 1.07 < expected < 1.09


def test_a_spot_machine_is_rented_when_it_is_cheaper_by_a_margin() -> None:
    waiting = job("a", 4, waited_s=30)
    assert rented(waiting, 6.0) == ["launch spot4"]
    assert rented(waiting, 11.5) == ["launch x4"]


def test_a_zone_that_took_machines_back_of_late_counts_as_dearer() -> None:
    waiting, zoned = job("a", 4, waited_s=30), {"region": "r", "zone": "z"}
    here = spot(9.0).model_copy(update=zoned)

    def rented_after(takebacks: dict[str, float]) -> list[str]:
        return plan(cluster(waiting, FULL, offers=(by_size(4), here), takebacks=takebacks))

    this, other = (f"zone:{here.provider}/r/{zone}" for zone in ("z", "other"))
    assert rented_after({}) == ["launch spot4"]
    assert rented_after({other: 9.0}) == ["launch spot4"]
    assert rented_after({this: 9.0}) == ["launch x4"]
    # The cloud chooses the zone, so the worst of them counts.
    here = here.model_copy(update={"zone": ""})
    assert rented_after({other: 9.0}) == ["launch x4"]


def test_prices_are_compared_for_the_same_work() -> None:
    slow = by_size(4).model_copy(update={"accelerator": "T4", "offer_id": "slow"})
    fast = slow.model_copy(
        update={
            "accelerator": "A100-80GB",
            "offer_id": "fast",
            "usd_per_hour": 3 * slow.usd_per_hour,
        }
    )
    snapshot = cluster(job("a", 4, waited_s=30), FULL, offers=(slow, fast))
    assert plan(snapshot) == ["launch slow"]
    assert plan(snapshot, gpu_speeds={"A100": 2.9}) == ["launch slow"]
    assert plan(snapshot, gpu_speeds={"A100": 3.1}) == ["launch fast"]
    assert plan(snapshot, gpu_speeds={"A100": 3.1, "T4": 1.1}) == ["launch slow"]


def test_spot_is_not_for_work_that_cannot_be_saved_or_could_not_be_late_once_more() -> None:
    assert rented(job("a", 4, waited_s=30, saves=False), 1.0) == ["launch x4"]
    assert rented(job("a", 4, waited_s=1_790), 1.0) == ["launch x4"]
    assert rented(job("a", 4, waited_s=30, interruption_count=1), 1.0) == ["launch x4"]


def test_a_job_comes_home_when_it_has_paid_what_its_data_costs_to_ship() -> None:
    # 100 GB at $0.09 are $9, which is 3/4 h of four GPUs at $3.
    heavy: dict[str, Any] = {"checkpoint": Checkpoint(save_s=60, load_s=90, size_gb=100)}
    due_s = TRIP_S + 0.75 * HOUR_S
    early = job("out", 4, on="i", ran_s=due_s - 1, **heavy)
    late = job("out", 4, on="i", ran_s=due_s, **heavy)
    assert plan(cluster(early, rented=[("i", 4)])) == []
    assert plan(cluster(late, rented=[("i", 4)])) == ["move out home h0"]
