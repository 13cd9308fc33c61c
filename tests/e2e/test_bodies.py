"""Instances with bodies: from work that waits to the cloud's last machine's end, for real.

In each cloud machines are rented, boot, run their own user data, trade their join tokens with the
controller, join Ray over the network, work, are drained and returned. AWS is asked for a machine
in any of its zones, Google for a gang of two in one call, and Baidu for a single one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hybrid.core.models import Instance, InstanceState
from tests.e2e.bodies import BodyDeployment, embodied, labels_of

pytestmark = [pytest.mark.bodies, pytest.mark.ray, pytest.mark.slow]

COUNTS = {"aws": 1, "gcp": 2, "baidu": 1}
by_cloud = pytest.mark.parametrize("name", COUNTS)


@dataclass
class Story:
    """What was seen while the machines worked.

    Attributes:
        rows: Of the machines while they worked, by cloud.
        ran: What their tasks said about themselves.
        result: How the job ended.
    """

    cluster: BodyDeployment
    rows: dict[str, list[Instance]] = field(default_factory=dict)
    ran: list[dict[str, Any]] = field(default_factory=list)
    result: str = ""


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """Tasks waited for each cloud, ran in it and ended; all machines have been returned."""
    with embodied(*COUNTS) as cluster:
        cluster.begin(anywhere=["aws"])
        story = Story(cluster)
        job = cluster.submit("provider=aws", "provider=baidu", gang="provider=gcp", gpus=1)
        cluster.wait_until(lambda: len(cluster.started()) == sum(COUNTS.values()), "all tasks")
        story.ran = cluster.started()
        story.rows = cluster.live_by_provider()
        cluster.open_gate()
        story.result = job.wait().value
        cluster.wait_until_home()
        yield story


@by_cloud
def test_tasks_run_on_the_machines_that_were_rented_for_them(story: Story, name: str) -> None:
    cluster, rows = story.cluster, story.rows[name]
    hosts = {(row.instance_id, cluster.body_of(row).boot.hostname) for row in rows}

    assert len(hosts) == COUNTS[name]
    assert hosts <= {labels_of(facts) for facts in story.ran}
    assert {cluster.provider_of(host) for _, host in hosts} == {name}
    assert {row.state for row in rows} == {InstanceState.RUNNING}
    assert story.result == "succeeded"


@by_cloud
def test_they_are_drained_and_returned(story: Story, name: str) -> None:
    for row in story.rows[name]:
        events = story.cluster.client.events(subject=row.instance_id).events
        kinds = [event.kind for event in events if event.kind.startswith("instance_")]

        # In between Ray may have refused: what held the node a moment ago was not gone yet.
        assert kinds[:3] == ["instance_requested", "instance_booting", "instance_running"]
        assert kinds[-3:] == [
            "instance_draining",
            "instance_terminating",
            "instance_terminated",
        ]
        assert not story.cluster.body_of(row).is_on


def test_no_more_were_rented_than_there_was_work_for(story: Story) -> None:
    rented = [row.offer.provider for row in story.cluster.rows()]

    assert {name: rented.count(name) for name in COUNTS} == COUNTS
    assert len(story.cluster.bodies()) == len(rented)


def test_aws_was_asked_for_any_zone_and_google_for_a_gang_at_once(story: Story) -> None:
    clouds = story.cluster.emulated
    actions = [call.action for call in clouds.aws.emulator.controls.calls]
    methods = [call.method for call in clouds.gcp.emulator.api.log]

    assert (actions.count("CreateFleet"), actions.count("RunInstances")) == (1, 0)
    assert (methods.count("instances.bulkInsert"), methods.count("instances.insert")) == (1, 0)


def test_a_machine_follows_its_lease_in_its_clouds_metadata(story: Story) -> None:
    """Google's look every 20 s only, and these may have been returned before."""
    (row,) = story.rows["aws"]

    asked = story.cluster.body_of(row).asked

    assert "/latest/meta-data/tags/instance/hybrid-expires-at" in asked


def test_nothing_is_left_in_the_clouds_or_on_this_machine(story: Story) -> None:
    story.cluster.assert_clean()
    story.cluster.assert_launched_once()
