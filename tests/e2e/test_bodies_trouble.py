"""Machines that work lose their power or their network; their work runs elsewhere.

One cluster with one busy machine in each cloud. What is done to them is done by the fixtures, one
after the other; the tests look.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hybrid.client import Job
from hybrid.core.models import Instance, InstanceState
from tests.e2e.bodies import BodyDeployment, embodied

pytestmark = [pytest.mark.bodies, pytest.mark.ray, pytest.mark.slow]

NAMES = ("aws", "gcp", "baidu")
SHORT_CUT_S = 3.0
by_cloud = pytest.mark.parametrize("name", NAMES)


@dataclass
class Story:
    """What happened.

    Attributes:
        first: The machines that lost their power, by cloud.
        second: Those that took over.
        third: Those that worked at the end.
        healed: What came of machines whose network came back.
    """

    cluster: BodyDeployment
    job: Job
    first: dict[str, Instance] = field(default_factory=dict)
    second: dict[str, Instance] = field(default_factory=dict)
    third: dict[str, Instance] = field(default_factory=dict)
    result: str = ""
    seen: dict[str, Any] = field(default_factory=dict)

    def wait_for_work(self, *, without: dict[str, Instance]) -> dict[str, Instance]:
        """Wait until a task runs in each cloud, on none of these machines."""
        gone = {row.instance_id for row in without.values()}

        def works() -> bool:
            working = {r.instance_id for r in self.cluster.working().values()}
            return len(working - gone) == len(NAMES)

        self.cluster.wait_until(works, "work in each cloud")
        return self.cluster.working()

    def ended(self, row: Instance) -> Instance:
        """Return a row as it is now."""
        return next(r for r in self.cluster.rows() if r.instance_id == row.instance_id)


@pytest.fixture(scope="module")
def powered_off() -> Iterator[Story]:
    """The power of a busy machine was cut in each cloud, and Baidu never learns of it."""
    with embodied(*NAMES) as cluster:
        cluster.begin()
        cluster.hypervisors["baidu"].sees_power_cuts = False
        job = cluster.submit(*(f"provider={name}" for name in NAMES), gpus=1)
        story = Story(cluster, job)
        story.first = story.wait_for_work(without={})
        for row in story.first.values():
            cluster.body_of(row).cut_power()
        story.second = story.wait_for_work(without=story.first)
        yield story


@pytest.fixture(scope="module")
def cut_off(powered_off: Story) -> Story:
    """AWS's machine was off the network until it was given up, Google's for a moment only."""
    story, cluster = powered_off, powered_off.cluster
    long, short = (cluster.body_of(story.second[name]) for name in ("aws", "gcp"))
    long.cut_network()
    short.cut_network()
    time.sleep(SHORT_CUT_S)
    short.heal_network()
    cluster.wait_until(lambda: story.ended(story.second["aws"]).is_ended, "the end of the lost one")
    story.third = story.wait_for_work(without={"aws": story.second["aws"]})
    cluster.open_gate()
    story.result = story.job.wait().value
    cluster.wait_until_home()
    return story


@by_cloud
def test_a_machine_that_lost_its_power_is_given_up_and_its_work_runs_elsewhere(
    powered_off: Story, name: str
) -> None:
    first, second = powered_off.first[name], powered_off.second[name]

    assert first.instance_id != second.instance_id
    assert powered_off.ended(first).state is InstanceState.TERMINATED
    assert powered_off.ended(first).problem
    assert not powered_off.cluster.body_of(first).is_on
    hosts = [facts["hostname"] for facts in powered_off.cluster.started()]
    assert powered_off.cluster.body_of(second).boot.hostname in hosts


def test_one_that_died_unseen_is_ended_at_its_cloud(powered_off: Story) -> None:
    """To Baidu it ran on, and would have cost."""
    bcc_id = powered_off.first["baidu"].provider_id.rpartition("/")[2]
    calls = powered_off.cluster.emulated.baidu.emulator.calls(f"POST /v2/instance/{bcc_id}")

    assert calls
    assert powered_off.first["baidu"].provider_id not in powered_off.cluster.emulated.machines()


def test_a_machine_off_the_network_is_given_up_ended_and_replaced(cut_off: Story) -> None:
    lost = cut_off.second["aws"]

    assert cut_off.third["aws"].instance_id != lost.instance_id
    assert cut_off.ended(lost).state is InstanceState.TERMINATED
    assert not cut_off.cluster.body_of(lost).is_on


def test_a_short_cut_costs_nothing(cut_off: Story) -> None:
    assert cut_off.third["gcp"].instance_id == cut_off.second["gcp"].instance_id


def test_all_work_is_done_and_nothing_is_left(cut_off: Story) -> None:
    assert cut_off.result == "succeeded"
    cut_off.cluster.assert_clean()
    cut_off.cluster.assert_launched_once()
