"""Instances with bodies: from a task that waits to the cloud's last machine's end, for real.

In each cloud a machine is rented, boots, runs its own user data, trades its join token with the
controller, joins Ray over the network, works, is drained and returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hybrid.core.models import Instance, InstanceState
from tests.e2e.bodies import BodyDeployment, embodied, labels_of

pytestmark = [pytest.mark.bodies, pytest.mark.ray, pytest.mark.slow]

NAMES = ("aws", "gcp", "baidu")
by_cloud = pytest.mark.parametrize("name", NAMES)


@dataclass
class Story:
    """What was seen while one machine in each cloud worked.

    Attributes:
        rows: Of the machines while they worked, by cloud.
        ran: What their tasks said about themselves.
        asked: What they asked their metadata services for, by cloud.
        result: How the job ended.
    """

    cluster: BodyDeployment
    rows: dict[str, Instance] = field(default_factory=dict)
    ran: list[dict[str, Any]] = field(default_factory=list)
    asked: dict[str, list[str]] = field(default_factory=dict)
    result: str = ""


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """Tasks waited for each cloud, ran in it and ended; all machines have been returned."""
    with embodied(*NAMES) as cluster:
        cluster.begin()
        story = Story(cluster)
        job = cluster.submit(*(f"provider={name}" for name in NAMES), gpus=1)
        cluster.wait_until(lambda: len(cluster.started()) == len(NAMES), "a task in each cloud")
        story.ran = cluster.started()
        story.rows = {row.offer.provider: row for row in cluster.live_rows()}
        cluster.open_gate()
        story.result = job.wait().value
        cluster.wait_until_home()
        story.asked = {name: cluster.body_of(story.rows[name]).asked for name in NAMES}
        yield story


@by_cloud
def test_a_task_runs_on_the_machine_that_was_rented_for_it(story: Story, name: str) -> None:
    row = story.rows[name]
    body = story.cluster.body_of(row)

    assert (row.instance_id, body.boot.hostname) in [labels_of(facts) for facts in story.ran]
    assert story.cluster.provider_of(body.boot.hostname) == name
    assert row.state is InstanceState.RUNNING
    assert story.result == "succeeded"


@by_cloud
def test_it_is_drained_and_returned(story: Story, name: str) -> None:
    said = story.cluster.client.events(subject=story.rows[name].instance_id).events

    kinds = [event.kind for event in said if event.kind.startswith("instance_")]
    assert kinds == [
        "instance_requested",
        "instance_booting",
        "instance_running",
        "instance_draining",
        "instance_terminating",
        "instance_terminated",
    ]
    assert len([r for r in story.cluster.rows() if r.offer.provider == name]) == 1
    assert not story.cluster.body_of(story.rows[name]).is_on


def test_it_follows_its_lease_in_its_clouds_metadata(story: Story) -> None:
    """Google's machines look every 20 s, and this one may have been returned before."""
    assert "/latest/meta-data/tags/instance/hybrid-expires-at" in story.asked["aws"]


def test_nothing_is_left_in_the_clouds_or_on_this_machine(story: Story) -> None:
    story.cluster.assert_clean()
    story.cluster.assert_launched_once()
