"""GPUs at home that services borrow: who makes room, who does not, and what is kept for them."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.core.models.work import JobView, Slot
from hybrid.core.policy.plan import Action, Loan, Snapshot, Start, Suspend
from tests.core.policy.jobs.make import actions as plan
from tests.core.policy.jobs.make import cluster, job

LONG_S = 3_600.0


def lent(*jobs: JobView, count: int = 1, gpus: float = 1.0, **changes: Any) -> Snapshot:
    """Return a snapshot with a service that borrows for so many replicas."""
    loan = Loan(service="chat", shape={"GPU": gpus}, count=count, priority=60)
    return cluster(*jobs, **changes).model_copy(update={"loans": (loan,)})


def suspended(actions: list[Action]) -> list[str]:
    return [a.job_id for a in actions if isinstance(a, Suspend)]


def test_a_job_with_a_checkpoint_and_a_lower_priority_lends_its_gpus() -> None:
    (action,) = plan(lent(job("a", 8, on="h0", ran_s=LONG_S)))

    assert isinstance(action, Suspend)
    assert action.reason.code == "lent"
    assert action.reason.message == "its GPUs are lent to the service chat"
    assert action.reason.facts == {
        "for_service": "chat",
        "gpus": 8.0,
        "priority": 50,
        "for_priority": 60,
    }


@pytest.mark.parametrize(
    "changes",
    [{"saves": False}, {"priority": 60}, {"priority": 90}, {"interruption_count": 99}],
    ids=["loses-its-work", "as-urgent", "more-urgent", "was-stopped-often"],
)
def test_a_job_that_may_not_be_stopped_lends_nothing(changes: dict[str, Any]) -> None:
    assert plan(lent(job("a", 8, on="h0", ran_s=LONG_S, **changes))) == []


def test_a_gang_is_not_stopped_for_a_replica() -> None:
    gang = job("a", 16, on=("h0", "h1"), ran_s=LONG_S)

    assert plan(lent(gang, home=2)) == []


def test_best_effort_work_leaves_first_with_or_without_a_checkpoint() -> None:
    filler = job("filler", 4, on="h0", ran_s=LONG_S, saves=False, is_filler=True)
    batch = job("batch", 4, on="h0", ran_s=LONG_S)

    (action,) = plan(lent(filler, batch))

    assert isinstance(action, Suspend)
    assert (action.job_id, action.reason.code) == ("filler", "best_effort")


def test_what_is_free_is_kept_for_a_replica_before_anybody_is_stopped() -> None:
    runs, waits = job("runs", 7, on="h0", ran_s=LONG_S), job("waits", 1)

    assert plan(lent(runs, waits)) == []
    (start,) = plan(cluster(runs, waits))
    assert isinstance(start, Start)


def test_what_a_lender_frees_goes_to_no_job_of_the_queue() -> None:
    runs, waits = job("runs", 1, on="h0", ran_s=LONG_S), job("waits", 1)

    actions = plan(lent(runs, waits, node_gpus=1))

    assert suspended(actions) == ["runs"]
    assert not [a for a in actions if isinstance(a, Start) and a.slots[0].node_id == "h0"]


def test_what_is_left_over_of_a_lender_is_for_the_queue() -> None:
    runs, waits = job("runs", 8, on="h0", ran_s=LONG_S), job("waits", 6)

    actions = plan(lent(runs, waits, count=2))

    assert suspended(actions) == ["runs"]
    (start,) = [a for a in actions if isinstance(a, Start)]
    assert start.slots == (Slot("h0", 6.0),)


def test_no_more_are_stopped_than_the_replicas_take() -> None:
    jobs = [job(f"j{n}", 1, on="h0", ran_s=LONG_S) for n in range(8)]

    assert len(suspended(plan(lent(*jobs, count=3)))) == 3


def test_rented_work_lends_nothing() -> None:
    out = job("out", 8, on="r0", ran_s=LONG_S)

    assert suspended(plan(lent(out, home=0, rented=[("r0", 8)]))) == []


def test_no_more_are_stopped_in_one_plan_than_may_be() -> None:
    jobs = [job(f"j{n}", 1, on="h0", ran_s=LONG_S) for n in range(8)]

    actions = plan(lent(*jobs, count=8), stops_per_tick=2)

    assert len(suspended(actions)) == 2


def test_the_order_of_jobs_decides_nothing() -> None:
    jobs = [job(f"j{n}", 2, on="h0", ran_s=LONG_S + n) for n in range(4)]

    assert plan(lent(*jobs, count=3)) == plan(lent(*reversed(jobs), count=3))
