"""Failover over three clouds in one pass: what refuses is asked once, and then left alone.

AWS has no stock, Google Cloud no quota in the region, Baidu two machines. Later AWS has stock
again, and one launch finds that out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import pytest

from hybrid.core.models import Event, InstanceState
from tests.e2e.clouds import CloudDeployment, Clouds, deployed_in, emulated
from tests.providers.baidu_cloud import SPEC

pytestmark = [pytest.mark.ray, pytest.mark.slow]

TASK_COUNT = 4
BAIDU_COUNT = 2
AWS_OFFER = "aws/us-east-1/us-east-1a/g5.xlarge/on_demand"
GCP_REGION = "region:gcp/us-central1"
BAIDU_OFFER = f"baidu/bj/cn-bj-d/{SPEC}/on_demand"
QUOTA = "Quota 'CPUS' exceeded.  Limit: 0.0 in region us-central1."
# Short, so that a probe comes soon; how often an offer is probed meanwhile must not matter.
CONFIG: dict[str, Any] = {"backoff": {"first": "4s", "longest": "4s"}}
TICKS = 3


@dataclass
class Story:
    """The cluster, and what it said after the first pass."""

    cluster: CloudDeployment
    status: Any
    plan: Any


@pytest.fixture(scope="module")
def passed() -> Iterator[Story]:
    """Four tasks wait; AWS and Google refuse, and Baidu gives two machines."""
    with emulated() as clouds:
        clouds.aws.emulator.controls.sell_out()
        clouds.gcp.emulator.faults.add(
            code="QUOTA_EXCEEDED", message=QUOTA, status=403, times=1_000_000
        )
        clouds.baidu.emulator.cloud.stock = {SPEC: BAIDU_COUNT}
        with deployed_in(clouds, **CONFIG, **clouds.config(pools_of(clouds))) as cluster:
            cluster.up()
            cluster.submit("site=cloud", count=TASK_COUNT, gpus=1)
            cluster.wait_until(
                lambda: len(cluster.events("instance_booting")) == BAIDU_COUNT, "Baidu's machines"
            )
            wait_ticks(cluster, 1)
            cluster.wait_until(
                lambda: "backed_off" in {f.reason.code for f in cluster.client.plan().findings},
                "a plan that leaves the offers alone",
            )
            yield Story(cluster, cluster.json("status"), cluster.json("plan"))


@pytest.fixture(scope="module")
def recovered(passed: Story) -> CloudDeployment:
    """AWS has stock again, and the controller found it."""
    cluster = passed.cluster
    cluster.emulated.aws.emulator.controls.stock.clear()
    cluster.wait_until(lambda: len(cluster.events("instance_booting")) > BAIDU_COUNT, "the probe")
    wait_ticks(cluster, TICKS)
    return cluster


def pools_of(clouds: Clouds) -> list[dict[str, Any]]:
    """Return a pool of AWS, two of one region of Google, and one of Baidu, in this order."""
    aws, gcp, baidu = clouds.by_name.values()
    return [
        aws.pool(aws.zones[0]),
        *(gcp.pool(zone) for zone in gcp.zones),
        baidu.pool(baidu.zones[0]),
    ]


def wait_ticks(cluster: CloudDeployment, count: int) -> None:
    before = cluster.status().controller.tick_count
    cluster.wait_until(
        lambda: cluster.status().controller.tick_count >= before + count, f"{count} ticks"
    )


def first_pass(cluster: CloudDeployment) -> list[Event]:
    """Return the events of the tick that first planned a launch, in order."""
    events = cluster.events()
    start = next(n for n, event in enumerate(events) if event.kind == "plan_made")
    tick_id = events[start].facts["tick_id"]
    return list(takewhile(lambda e: e.facts.get("tick_id", tick_id) == tick_id, events[start:]))


def failures(events: list[Event]) -> list[str]:
    """Return what was put to rest: an offer, or a larger place."""
    return [event.subject for event in events if event.kind == "offer_failed"]


def test_all_three_clouds_were_asked_in_one_tick(passed: Story) -> None:
    events = first_pass(passed.cluster)

    asked = [e.facts["provider"] for e in events if e.kind == "instance_requested"]
    booting = [e.facts["provider"] for e in events if e.kind == "instance_booting"]

    assert list(dict.fromkeys(asked)) == ["aws", "gcp", "baidu"]
    assert booting == ["baidu"] * BAIDU_COUNT
    assert [e.kind for e in events].count("plan_made") == 3


def test_each_refused_scope_was_asked_once_in_that_tick(passed: Story) -> None:
    cluster = passed.cluster
    events = first_pass(cluster)

    # Four machines were wanted of each; the refusal of the first spoke for all, and for Google's
    # other zone too.
    assert failures(events) == [AWS_OFFER, GCP_REGION, BAIDU_OFFER]
    wait_until_asked_once_for_each_failure(cluster, "aws", AWS_OFFER)
    wait_until_asked_once_for_each_failure(cluster, "gcp", GCP_REGION)


def wait_until_asked_once_for_each_failure(cluster: CloudDeployment, name: str, key: str) -> None:
    """Wait until every create call of a cloud has put `key` to rest; one may be going on."""
    cloud = cluster.emulated.by_name[name]
    cluster.wait_until(
        lambda: cloud.create_count() == failures(cluster.events()).count(key),
        f"a failure for each call of {name}",
    )


def test_the_cloud_s_own_words_are_in_events_status_and_plan(passed: Story) -> None:
    said = {e.subject: e.message for e in passed.cluster.events("offer_failed")}
    assert "InsufficientInstanceCapacity" in said[AWS_OFFER]
    assert QUOTA.partition(".")[0] in said[GCP_REGION]
    assert "ask Google for a higher quota" in said[GCP_REGION]
    assert "StockNotEnough" in said[BAIDU_OFFER]

    for answer in (passed.status["plan"], passed.plan):
        rests = {rest["key"]: (rest["scope"], rest["error"]) for rest in answer["resting"]}
        assert rests == {
            AWS_OFFER: ("offer", "CapacityError"),
            GCP_REGION: ("region", "QuotaError"),
            BAIDU_OFFER: ("offer", "CapacityError"),
        }
        assert {rest["key"]: rest["message"] for rest in answer["resting"]} == said
        (region,) = [rest for rest in answer["resting"] if rest["scope"] == "region"]
        assert [offer.split("/")[2] for offer in region["offer_ids"]] == [
            "us-central1-a",
            "us-central1-b",
        ]


def test_the_work_that_waits_is_told_which_of_them_it_waits_for(passed: Story) -> None:
    (found,) = [f for f in passed.plan["findings"] if f["reason"]["code"] == "backed_off"]

    assert found["count"] == TASK_COUNT - BAIDU_COUNT
    assert found["reason"]["message"].startswith((AWS_OFFER, GCP_REGION, BAIDU_OFFER))
    assert "tried again in" in found["reason"]["message"]


def test_refused_launches_are_over_and_count_for_nothing(passed: Story) -> None:
    rows = [row for row in passed.cluster.rows() if row.offer.provider != "baidu"]

    assert {row.state for row in rows} == {InstanceState.FAILED}
    assert passed.status["budget"]["now"]["node_count"] == BAIDU_COUNT
    assert {i["provider"] for i in passed.status["instances"]} == {"baidu"}


def test_one_launch_probes_the_cloud_that_recovered(recovered: CloudDeployment) -> None:
    aws = recovered.emulated.aws
    refused = failures(recovered.events()).count(AWS_OFFER)

    # Two tasks wait, and the machine that was had has not proved itself: no second is asked for.
    assert len(aws.machines()) == 1
    assert aws.create_count() == refused + 1


def test_what_still_refuses_is_asked_once_for_each_rest(recovered: CloudDeployment) -> None:
    wait_until_asked_once_for_each_failure(recovered, "gcp", GCP_REGION)


def test_down_leaves_nothing_in_any_cloud(recovered: CloudDeployment) -> None:
    recovered.down()

    assert recovered.emulated.machines() == {}
    assert all(row.is_ended for row in recovered.rows())
