"""Two clusters and strangers in the same accounts; keys that are refused; a cloud taken out.

Both clusters have the same name. What is done is done by the fixtures, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import pytest

from hybrid.core.models import InstanceState
from tests.e2e.accounts import CLUSTER, Machine
from tests.e2e.clouds import CloudDeployment, Clouds, deployed_in, emulated

pytestmark = [pytest.mark.ray, pytest.mark.slow]

NAMES = ("aws", "gcp", "baidu")
HINTS = {
    "aws": "check the access key",
    "gcp": "check the credentials",
    "baidu": "check the access key",
}


@dataclass
class Story:
    """Two clusters with a machine in each cloud, and machines of strangers.

    Attributes:
        first_id: Of the first cluster; it is known after its end too.
        strangers: Ids of machines that nobody of us rented.
        others: What was there before the first cluster ended and is not its own.
    """

    clouds: Clouds
    first: CloudDeployment
    second: CloudDeployment
    first_id: str
    strangers: set[str]
    others: dict[str, Machine]


@pytest.fixture(scope="module")
def shared() -> Iterator[Story]:
    """Both clusters have a machine in each cloud."""
    with emulated() as clouds, ExitStack() as stack:
        clouds.baidu.emulator.cloud.is_filter_loose = True
        config = clouds.config([c.pool(c.zones[0]) for c in clouds.by_name.values()])
        first = stack.enter_context(deployed_in(clouds, **config))
        second = stack.enter_context(deployed_in(clouds, **config))
        for cluster in (first, second):
            cluster.up()
            cluster.submit(*(f"provider={name}" for name in NAMES), gpus=1)
        for cluster in (first, second):
            cluster.wait_until(partial(is_everywhere, cluster), "a machine in each cloud")
        first_id = first.cluster_id
        strangers = {
            cloud.add_stranger(tags)
            for cloud in clouds.by_name.values()
            for tags in strange_tags(first, first_id, cloud.name)
        }
        others = {i: m for i, m in clouds.machines().items() if i not in ids(first)}
        yield Story(clouds, first, second, first_id, strangers, others)


@pytest.fixture(scope="module")
def alone(shared: Story) -> Story:
    """The first cluster has gone down."""
    shared.first.down()
    return shared


def booting(cluster: CloudDeployment) -> set[str]:
    """Return the clouds with a machine that boots."""
    rows = cluster.live_rows()
    return {r.offer.provider for r in rows if r.state is InstanceState.BOOTING}


def is_everywhere(cluster: CloudDeployment) -> bool:
    return booting(cluster) == set(NAMES)


def ids(cluster: CloudDeployment) -> set[str]:
    """Return the clouds' ids of all that a cluster ever rented."""
    return {row.provider_id for row in cluster.rows() if row.provider_id}


def strange_tags(cluster: CloudDeployment, cluster_id: str, name: str) -> list[dict[str, str]]:
    """Return tags that are nearly those of a cluster's machine in a cloud."""
    (row,) = cluster.live_by_provider()[name]
    similar = {**row.spec.tags, CLUSTER: f"{cluster_id}0"}
    copied = {CLUSTER: cluster_id, "team": "somebody else"}
    return [similar, {**similar, CLUSTER: cluster_id[:-1]}, copied]


# --- two clusters ---------------------------------------------------------------------------


def test_each_cluster_sees_its_own_machines_only(shared: Story) -> None:
    assert shared.first_id != shared.second.cluster_id
    for cluster in (shared.first, shared.second):
        seen = {i["provider_id"] for i in cluster.json("status")["instances"]}

        assert seen == ids(cluster)
        assert seen == set(shared.clouds.machines(cluster.cluster_id)) - shared.strangers
        assert cluster.json("gc", "--dry-run")["items"] == []


def test_down_ends_the_first_cluster_s_machines_and_no_others(alone: Story) -> None:
    assert set(alone.clouds.machines()) == set(alone.others)
    assert {row.state for row in alone.first.rows()} == {InstanceState.TERMINATED}


def test_the_second_cluster_did_not_notice(alone: Story) -> None:
    assert booting(alone.second) == set(NAMES)
    assert ids(alone.second) < set(alone.clouds.machines())
    assert len(alone.second.rows()) == len(NAMES)


def test_cleaning_up_leaves_strangers_alone(alone: Story) -> None:
    told = alone.second.json("gc", "-y")

    assert (told["items"], told["unreadable"]) == ([], [])
    assert alone.strangers < set(alone.clouds.machines())


# --- keys that are refused ------------------------------------------------------------------


@pytest.mark.parametrize(("refusing", "working"), [(("aws", "baidu"), "gcp"), (("gcp",), "aws")])
def test_refused_keys_are_told_with_what_to_do_and_cost_no_other_cloud(
    alone: Story, refusing: tuple[str, ...], working: str
) -> None:
    cluster, clouds = alone.second, alone.clouds.by_name
    before = clouds[working].create_count()

    words = [clouds[name].refuse_keys() for name in refusing]
    try:
        cluster.wait_until(lambda: blind(cluster) == set(refusing), "the keys' end")
        cluster.submit(f"provider={working}", gpus=1)
        cluster.wait_until(lambda: clouds[working].create_count() > before, "the other cloud")
        page = " ".join(cluster.hybrid("status").out.split())
    finally:
        for name in refusing:
            clouds[name].accept_keys()

    for name, said in zip(refusing, words, strict=True):
        assert f"Unknown: provider:{name} cannot be seen" in page
        assert said in page
        assert HINTS[name] in page
    assert f"Unknown: provider:{working}" not in page
    cluster.wait_until(lambda: not blind(cluster), "the keys to be taken again")
    assert {row.state for row in cluster.rows()} <= {InstanceState.REQUESTED, InstanceState.BOOTING}


def blind(cluster: CloudDeployment) -> set[str]:
    """Return the clouds that cannot be read."""
    down = (source.name for source in cluster.status().sources if not source.is_up)
    return {name.removeprefix("provider:") for name in down}


# --- clouds that are taken out of the file --------------------------------------------------


def test_clouds_with_machines_cannot_be_taken_out_of_the_file(alone: Story) -> None:
    cluster, machines, rows = alone.second, alone.clouds.machines(), alone.second.live_rows()
    kept = alone.clouds.by_name["gcp"]
    cluster.stop_controller()
    cluster.configure(**alone.clouds.config([kept.pool(kept.zones[0])]))

    done = cluster.hybrid("up", str(cluster.config), "-y", code=2)

    said = done.err.splitlines()[-1]
    assert "the configuration has no provider aws, provider baidu any more, but" in said
    assert "back under 'clouds'" in said
    for row in rows:
        shown = f"{row.instance_id} ({row.offer.provider} {row.provider_id}, booting)"
        assert (shown in said) == (row.offer.provider != "gcp")
    assert set(alone.clouds.machines()) == set(machines)
    assert cluster.live_rows() == rows


def test_putting_it_back_works(alone: Story) -> None:
    cluster, machines = alone.second, set(alone.clouds.machines())
    pools = [c.pool(c.zones[0]) for c in alone.clouds.by_name.values()]
    cluster.configure(**alone.clouds.config(pools))
    before = cluster.live_rows()

    cluster.up()

    assert [(r.instance_id, r.state) for r in cluster.live_rows()] == [
        (r.instance_id, r.state) for r in before
    ]
    assert set(alone.clouds.machines()) == machines


def test_down_waits_for_a_cloud_that_refuses_our_keys_and_ends_the_rest(alone: Story) -> None:
    cluster, aws = alone.second, alone.clouds.by_name["aws"]
    kept = {row.provider_id for row in cluster.live_by_provider()["aws"]}
    aws.refuse_keys()
    try:
        closing = cluster.start("down", str(cluster.config), "-y")
        cluster.wait_until(
            lambda: (
                set(alone.clouds.machines()) == alone.strangers | kept
                and "provider:aws cannot be read" in cluster.status().controller.phase
            ),
            "the other clouds to be empty",
        )
    finally:
        aws.accept_keys()

    done = closing.wait()

    assert done.code == 0, done.text
    assert "provider:aws cannot be read, so nothing of it is proved gone" in done.err
    assert set(alone.clouds.machines()) == alone.strangers
    assert all(row.is_ended for row in cluster.rows())
