"""A daily cap that today's money will pass before the evening is spent on last moments only."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.core.models import Caps, Commitment
from tests.core.policy.jobs.make import cluster, job, plan

FULL = job("full", 8, on="h0", ran_s=60)
NEW = job("new", 4, waited_s=60)
AT_LAST = job("late", 4, waited_s=1_700)


def spent(usd: float, share: float | None, *waiting: Any) -> list[str]:
    return plan(
        cluster(
            *waiting,
            FULL,
            caps=Caps(usd_per_day=1_000.0),
            commitment=Commitment(day_usd=usd),
            usual_day_share=share,
        )
    )


def test_a_new_job_is_rented_for_while_money_is_in_its_course() -> None:
    assert spent(400.0, 0.4, NEW) == ["launch x4"]
    assert spent(440.0, 0.4, NEW) == ["launch x4"]


def test_a_new_job_waits_when_money_runs_ahead_and_one_at_its_last_moment_does_not() -> None:
    assert spent(450.0, 0.4, NEW) == []
    assert spent(450.0, 0.4, AT_LAST) == ["launch x4"]


@pytest.mark.parametrize("share", [None, 0.0])
def test_nothing_is_paced_without_a_habit_or_at_the_first_dollars_of_a_day(
    share: float | None,
) -> None:
    usd = 450.0 if share is None else 90.0
    assert spent(usd, share, NEW) == ["launch x4"]


def test_nothing_is_paced_without_a_daily_cap() -> None:
    snapshot = cluster(NEW, FULL, commitment=Commitment(day_usd=9e9), usual_day_share=0.1)
    assert plan(snapshot) == ["launch x4"]
