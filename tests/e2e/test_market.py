"""Offers that cannot be had, and work that nothing can hold: nothing is rented, and why is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hybrid.core.models import InstanceState
from hybrid.core.policy.plan import Finding
from tests.e2e.conftest import deployed
from tests.e2e.deployment import POOL, Deployment

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CONFIG: dict[str, Any] = {
    "onprem": {"hosts": []},
    "clouds": {
        "any_of": [
            {**POOL, "infra": "local/r/never", "fail": {"never_joins": True}},
            {**POOL, "infra": "local/r/empty", "fail": {"sold_out": True}},
        ]
    },
    "deadlines": {"join": "4s"},
    "backoff": {"first": "1h", "longest": "1h"},
}
TICKS = 6


@pytest.fixture(scope="module")
def troubled() -> Iterator[Deployment]:
    """A cluster whose clouds give nothing, and one job that asks for all kinds of it."""
    with deployed(**CONFIG) as cluster:
        cluster.up()
        never = cluster.submit("zone=never")
        cluster.client.submit(f"python gate.py {cluster.gate} --gpus 64", working_dir=cluster.work)
        cluster.client.submit(
            f"python gate.py {cluster.gate} --where zone=empty", working_dir=cluster.work
        )
        assert never.id
        cluster.wait_until(
            lambda: (
                [r.state for r in cluster.rows()] == [InstanceState.TERMINATED]
                and {f.reason.code for f in findings(cluster)}
                == {"backed_off", "sold_out", "never_fits"}
            ),
            "the instance to be given up, and a reason for each kind of work",
        )
        yield cluster


def findings(cluster: Deployment) -> tuple[Finding, ...]:
    return cluster.client.plan().findings


def finding(cluster: Deployment, code: str) -> Finding:
    return next(f for f in findings(cluster) if f.reason.code == code)


def wait_ticks(cluster: Deployment, count: int) -> None:
    before = cluster.status().controller.tick_count
    cluster.wait_until(
        lambda: cluster.status().controller.tick_count >= before + count, f"{count} ticks"
    )


def test_an_instance_that_never_joins_is_ended_at_its_deadline(troubled: Deployment) -> None:
    (row,) = troubled.rows()

    assert row.problem
    kinds = [e.kind for e in troubled.events() if e.subject == row.instance_id]
    assert "instance_running" not in kinds
    assert kinds[-2:] == ["instance_terminating", "instance_terminated"]
    said = [e for e in troubled.events("instance_terminating") if e.subject == row.instance_id]
    assert said[0].facts["because"] == "join_overdue"
    assert not troubled.pids_of(row.instance_id)


def test_its_offer_rests_and_the_plan_says_so(troubled: Deployment) -> None:
    said = finding(troubled, "backed_off").reason.message

    assert "local/r/never" in said
    assert "did not join in time" in said
    assert "tried again in" in said
    assert "did not join in time" in " ".join(troubled.hybrid("plan").out.split())


def test_a_sold_out_offer_is_named_and_never_called(troubled: Deployment) -> None:
    said = finding(troubled, "sold_out").reason.message

    assert "local/r/empty" in said
    assert "sold out" in said
    assert [row.offer.zone for row in troubled.rows()] == ["never"]


def test_work_that_no_offer_can_ever_hold_is_said_to_wait_for_ever(troubled: Deployment) -> None:
    impossible = finding(troubled, "never_fits")
    status = json.loads(troubled.hybrid("status", "--json").out)
    plan = json.loads(troubled.hybrid("plan", "--json").out)

    assert impossible.is_for_ever
    assert dict(impossible.shape) == {"GPU": 64}
    for answer in (status["plan"], plan):
        told = [f for f in answer["findings"] if f["is_for_ever"]]
        assert [f["shape"] for f in told] == [{"GPU": 64.0}]
    assert "64" in troubled.hybrid("status").out
    assert "64" in troubled.hybrid("plan").out


def test_nothing_of_it_is_tried_again_and_again(troubled: Deployment) -> None:
    before = len(troubled.events())

    wait_ticks(troubled, TICKS)

    assert len(troubled.rows()) == 1
    assert len(troubled.records()) == 1
    assert len(troubled.events()) == before
