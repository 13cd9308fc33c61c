"""Machines that somebody else ends: their cloud takes them back, or nobody renews their lease.

One cluster with one busy machine in each cloud, those of AWS and Google on the spot market. What
is done is done by the fixtures, one after the other; the tests look.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from hybrid.core.models import Instance, InstanceState
from tests.bodies import Body
from tests.e2e.bodies import BodyDeployment, embodied

pytestmark = [pytest.mark.bodies, pytest.mark.ray, pytest.mark.slow]

NAMES = ("aws", "gcp", "baidu")
SPOT = ("aws", "gcp")
NOTICE_S = 20.0
CONFIG = {"lease": {"length": "45s", "renew": "2s"}}
NODE = {"aws": "/var/lib/hybrid/node", "gcp": "/run/hybrid", "baidu": "/var/lib/hybrid/node"}
by_spot = pytest.mark.parametrize("name", SPOT)
by_cloud = pytest.mark.parametrize("name", NAMES)


@dataclass
class Story:
    """What happened.

    Attributes:
        first: The machines that were taken back, by cloud.
        second: Those that worked when the controller died for good.
        notices: What the first ones were told.
        left: The machines that the clouds still had when all bodies were off.
    """

    cluster: BodyDeployment
    first: dict[str, Instance] = field(default_factory=dict)
    second: dict[str, Instance] = field(default_factory=dict)
    notices: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    def body(self, row: Instance) -> Body:
        """Return the body of an instance."""
        return self.cluster.body_of(row)

    def see_notice(self, name: str) -> None:
        """Wait until the first machine of a cloud has heard, and Ray drains it."""
        row = self.first[name]
        notice = self.body(row).inside(f"{NODE[name]}/notice")
        self.cluster.wait_until(notice.exists, f"the notice of {name}")
        self.notices[name] = notice.read_text()

        def drains() -> bool:
            node = self.cluster.node(row.instance_id)
            return node is not None and node.state == "draining"

        self.cluster.wait_until(drains, f"the drain of {name}'s machine")


@pytest.fixture(scope="module")
def taken_back() -> Iterator[Story]:
    """Both clouds with a spot market gave notice, and took their machines back."""
    with embodied(*NAMES) as cluster:
        cluster.begin(spot=SPOT, **CONFIG)
        cluster.submit(*(f"provider={name}" for name in NAMES), gpus=1)
        cluster.wait_until(lambda: len(cluster.working()) == len(NAMES), "work in each cloud")
        story = Story(cluster, first=cluster.working())
        take_back(story)
        for name in SPOT:
            story.see_notice(name)
        gone = {story.first[name].instance_id for name in SPOT}
        cluster.wait_until(
            lambda: len({r.instance_id for r in cluster.working().values()} - gone) == len(NAMES),
            "work elsewhere",
        )
        story.second = cluster.working()
        yield story


@pytest.fixture(scope="module")
def abandoned(taken_back: Story) -> Story:
    """The controller died and never came back; all machines have been off for a moment."""
    cluster = taken_back.cluster
    cluster.kill_controller()
    cluster.wait_until(lambda: not cluster.on(), "all machines to be off")
    time.sleep(1.0)  # the clouds hear of it, and Google deletes
    taken_back.left = {
        name: i for name, cloud in cluster.emulated.by_name.items() for i in cloud.machines()
    }
    return taken_back


def take_back(story: Story) -> None:
    """Make both clouds give notice."""
    clouds = story.cluster.emulated
    clouds.aws.emulator.interrupt(
        story.first["aws"].provider_id.rpartition("/")[2], notice_s=NOTICE_S
    )
    google = clouds.gcp.emulator.cloud
    name = story.first["gcp"].provider_id.rpartition("/")[2]
    with google.lock:
        google.delete_s = NOTICE_S
        google.preempt(next(key for key in google.instances if key[2] == name))
        google.delete_s = 0.03


@by_spot
def test_the_node_hears_of_it_from_its_clouds_metadata(taken_back: Story, name: str) -> None:
    origin = {"aws": "aws-terminate", "gcp": "gcp-preempted"}[name]

    assert taken_back.notices[name].endswith(f" {origin}")


@by_spot
def test_its_work_runs_again_on_another_machine(taken_back: Story, name: str) -> None:
    first, second = taken_back.first[name], taken_back.second[name]

    def state() -> InstanceState:
        rows = taken_back.cluster.rows()
        return next(row.state for row in rows if row.instance_id == first.instance_id)

    assert first.instance_id != second.instance_id
    taken_back.cluster.wait_until(lambda: state() is InstanceState.TERMINATED, "its end")
    assert not taken_back.body(first).is_on
    assert first.provider_id not in taken_back.cluster.emulated.machines()


def test_a_machine_on_demand_works_on(taken_back: Story) -> None:
    assert taken_back.second["baidu"].instance_id == taken_back.first["baidu"].instance_id


@by_cloud
def test_without_a_controller_every_machine_goes_off(abandoned: Story, name: str) -> None:
    assert not abandoned.body(abandoned.second[name]).is_on


@pytest.mark.parametrize("name", ["aws", "gcp"])
def test_a_machine_that_follows_its_lease_ends_its_node_first(abandoned: Story, name: str) -> None:
    body = abandoned.body(abandoned.second[name])
    status = json.loads(body.inside(f"{NODE[name]}/status.json").read_text())

    assert (status["phase"], status["problem"]) == ("stopped", "lease ended")
    # Google switches off what it deletes.
    assert body.was_shut_down or name == "gcp"


@pytest.mark.parametrize("name", ["aws", "gcp"])
def test_such_a_node_has_ray_drain_it_first(abandoned: Story, name: str) -> None:
    """The head lives on here; only the controller is dead."""
    log = abandoned.body(abandoned.second[name]).inside(f"{NODE[name]}/node.log").read_text()

    assert "nobody renewed the lease of this machine" in log
    assert "Ray drains the node" in log


def test_every_cloud_is_empty(abandoned: Story) -> None:
    """AWS ends what shuts itself down, Baidu what was not renewed, and at Google it asks itself."""
    google = abandoned.cluster.emulated.gcp.emulator

    assert abandoned.left == {}
    assert google.cloud.instances == {}
    deletions = [r for r in google.api.log if r.method == "instances.delete"]
    name = abandoned.second["gcp"].provider_id.rpartition("/")[2]
    assert deletions[-1].path.endswith(f"/instances/{name}")
    assert deletions[-1].status == 200


def test_the_next_controller_finds_nothing_to_return(abandoned: Story) -> None:
    abandoned.cluster.down()

    abandoned.cluster.assert_clean()
    abandoned.cluster.assert_launched_once()
