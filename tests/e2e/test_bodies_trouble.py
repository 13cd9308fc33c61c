"""Machines that work lose their power or their network; their work runs elsewhere.

One cluster with one busy machine in each cloud. What is done to them is done by the fixtures, one
after the other; the tests look.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from hybrid.client import Job
from hybrid.core.models import Instance, InstanceState
from tests.e2e.bodies import BodyDeployment, embodied
from tests.emulators.baidu import Fault

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
        created: Create calls and machines of each cloud at the first work.
        unended: Baidu's lost machine when another had taken over.
        came_back: What its node said when its network was back.
        result: How the job ended.
    """

    cluster: BodyDeployment
    job: Job
    first: dict[str, Instance] = field(default_factory=dict)
    second: dict[str, Instance] = field(default_factory=dict)
    third: dict[str, Instance] = field(default_factory=dict)
    created: dict[str, tuple[int, int]] = field(default_factory=dict)
    unended: Instance | None = None
    came_back: str = ""
    result: str = ""

    def wait_for_work(self, *, without: dict[str, Instance]) -> dict[str, Instance]:
        """Wait until a task runs in each cloud, on none of these machines."""
        gone = {row.instance_id for row in without.values()}

        def works() -> bool:
            working = {r.instance_id for r in self.cluster.working().values()}
            return len(working - gone) == len(NAMES)

        self.cluster.wait_until(works, "work in each cloud")
        return self.cluster.working()

    def now(self, row: Instance) -> Instance:
        """Return a row as it is now."""
        return next(r for r in self.cluster.rows() if r.instance_id == row.instance_id)


@pytest.fixture(scope="module")
def powered_off() -> Iterator[Story]:
    """The power of a busy machine was cut in each cloud, and Baidu never learns of it.

    The answer to the first launch in each cloud was lost, and the controller was killed while the
    machines booted that took over.
    """
    with embodied(*NAMES) as cluster:
        # Two of three that look dead at once are held for half an hour: our own network may be cut.
        cluster.begin(idle={"unhealthy_hold": "5s"})
        cluster.hypervisors["baidu"].sees_power_cuts = False
        for cloud in cluster.emulated.by_name.values():
            cloud.lose_next_answer()
        job = cluster.submit(*(f"provider={name}" for name in NAMES), gpus=1)
        story = Story(cluster, job)
        story.first = story.wait_for_work(without={})
        for name, cloud in cluster.emulated.by_name.items():
            story.created[name] = cloud.create_count(), len(cluster.hypervisors[name].bodies)
        for row in story.first.values():
            cluster.body_of(row).cut_power()
        cluster.wait_until(lambda: len(cluster.on()) == len(NAMES), "others to boot")
        cluster.kill_controller()
        cluster.up()
        story.second = story.wait_for_work(without=story.first)
        yield story


@pytest.fixture(scope="module")
def cut_off(powered_off: Story) -> Story:
    """The network of all machines was cut: Google's for a moment, the others' for good.

    Baidu does not end its machine when it is told to, and its network comes back when another
    has taken over.
    """
    story, cluster = powered_off, powered_off.cluster
    bodies = {name: cluster.body_of(row) for name, row in story.second.items()}
    release = Fault("refuse", call=r"POST /v2/instance/i-", times=1000)
    cluster.emulated.baidu.emulator.faults.append(release)
    for body in bodies.values():
        body.cut_network()
    time.sleep(SHORT_CUT_S)
    bodies["gcp"].heal_network()
    lost = {name: story.second[name] for name in ("aws", "baidu")}
    cluster.wait_until(lambda: story.now(lost["aws"]).is_ended, "the end of the lost one")
    story.third = story.wait_for_work(without=lost)

    story.unended = story.now(lost["baidu"])
    bodies["baidu"].heal_network()
    status = bodies["baidu"].inside("/var/lib/hybrid/node/status.json")
    cluster.wait_until(lambda: '"running"' not in status.read_text(), "the end of its Ray")
    story.came_back = status.read_text()
    release.times = 0
    cluster.kill_controller()
    cluster.up()  # a new one does not wait as long as the old one by now, between two tries
    cluster.wait_until(lambda: story.now(lost["baidu"]).is_ended, "the end of Baidu's")

    cluster.open_gate()
    story.result = story.job.wait().value
    cluster.wait_until_home()
    return story


@by_cloud
def test_a_lost_answer_rents_no_second_machine(powered_off: Story, name: str) -> None:
    assert powered_off.created[name] == (2, 1)


@by_cloud
def test_a_machine_that_lost_its_power_is_given_up_and_its_work_runs_elsewhere(
    powered_off: Story, name: str
) -> None:
    first, second = powered_off.first[name], powered_off.second[name]

    assert first.instance_id != second.instance_id
    # Its work may run elsewhere before its cloud says that it is gone.
    powered_off.cluster.wait_until(
        lambda: powered_off.now(first).state is InstanceState.TERMINATED, "the proof of its end"
    )
    assert powered_off.now(first).problem
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
    assert cut_off.now(lost).state is InstanceState.TERMINATED
    assert not cut_off.cluster.body_of(lost).is_on


def test_a_short_cut_costs_nothing(cut_off: Story) -> None:
    assert cut_off.third["gcp"].instance_id == cut_off.second["gcp"].instance_id


def test_a_machine_that_comes_back_after_it_was_given_up_works_no_more(cut_off: Story) -> None:
    """Its cloud would not end it meanwhile. Ray ends a node that it took for dead."""
    assert cut_off.unended is not None
    assert cut_off.unended.state is InstanceState.TERMINATING
    assert cut_off.third["baidu"].instance_id != cut_off.unended.instance_id
    assert json.loads(cut_off.came_back)["phase"] == "exited"
    assert cut_off.now(cut_off.unended).state is InstanceState.TERMINATED


def test_all_work_is_done_and_nothing_is_left(cut_off: Story) -> None:
    assert cut_off.result == "succeeded"
    cut_off.cluster.assert_clean()
    cut_off.cluster.assert_launched_once()
