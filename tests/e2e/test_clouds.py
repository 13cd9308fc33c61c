"""A burst into each cloud through its own SDK, from the waiting task to the last machine's end.

One cluster rents in three emulated clouds at once. What is done to it is done by the fixtures,
one after the other; the tests look. No machine ever joins: none has a body.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hybrid.core.models import Instance, InstanceState
from tests.e2e.accounts import CLUSTER, Machine
from tests.e2e.clouds import CloudDeployment, deployed_in, emulated

pytestmark = [pytest.mark.ray, pytest.mark.slow]

NAMES = ("aws", "gcp", "baidu")
LEASE_S = 3600.0
SLACK_S = 60.0
CONFIG: dict[str, Any] = {
    "lease": {"length": "1h", "renew": "2s"},
    "backoff": {"first": "1h", "longest": "1h"},
}
by_cloud = pytest.mark.parametrize("name", NAMES)


@dataclass
class Story:
    """The cluster, and what was seen on the way.

    Attributes:
        rows: Of the first machines, two in each cloud.
        machines: The same as the clouds have them.
        status, nodes, events: What the command line said then.
        deleted: Of the first machines, those that were deleted by hand.
        spot: Machines rented after the first ones failed.
    """

    cluster: CloudDeployment
    config: dict[str, Any]
    rows: dict[str, list[Instance]] = field(default_factory=dict)
    machines: dict[str, Machine] = field(default_factory=dict)
    status: Any = None
    nodes: Any = None
    events: Any = None
    deleted: dict[str, Instance] = field(default_factory=dict)
    spot: dict[str, Machine] = field(default_factory=dict)


@pytest.fixture(scope="module")
def burst() -> Iterator[Story]:
    """Tasks wait, and two machines boot in each cloud; of one the first answer was lost."""
    with emulated() as clouds:
        pools: list[dict[str, Any]] = []
        for cloud in clouds.by_name.values():
            first, second = cloud.zones
            pools.append({**cloud.pool(first), "max_nodes": 2})
            pools.append({**cloud.pool(second), "max_nodes": 2, "use_spot": True})
            cloud.lose_next_answer()
        config = {**CONFIG, **clouds.config(pools)}
        with deployed_in(clouds, **config) as cluster:
            story = Story(cluster, config)
            cluster.up()
            cluster.submit(*(f"provider={name}" for name in NAMES), count=2, gpus=1)
            cluster.wait_until(
                lambda: [row.state for row in cluster.rows()] == [InstanceState.BOOTING] * 6,
                "two machines in each cloud",
            )
            story.rows = cluster.live_by_provider()
            story.machines = clouds.machines()
            story.status, story.nodes = cluster.json("status"), cluster.json("nodes")
            story.events = cluster.json("events")
            yield story


@pytest.fixture(scope="module")
def taken_over(burst: Story) -> Story:
    """The controller was killed, and another has looked at everything; its patience is short."""
    cluster = burst.cluster
    cluster.kill_controller()
    cluster.configure(**burst.config, deadlines={"join": "4s"})
    cluster.up()
    ticks = cluster.status().controller.tick_count
    cluster.wait_until(
        lambda: cluster.status().controller.tick_count >= ticks + 4, "a few looks at the clouds"
    )
    return burst


@pytest.fixture(scope="module")
def deleted(taken_over: Story) -> Story:
    """One machine of each cloud was deleted in the console, and its place taken by a spot one."""
    cluster = taken_over.cluster
    for name, rows in taken_over.rows.items():
        cluster.emulated.by_name[name].delete_by_hand(rows[0].provider_id)
        taken_over.deleted[name] = rows[0]

    def have_spot() -> bool:
        found = {i: m for i, m in cluster.emulated.machines().items() if m.is_spot}
        taken_over.spot |= found
        return len(taken_over.spot) == len(NAMES)

    cluster.wait_until(have_spot, "a spot machine in each cloud")
    return taken_over


@pytest.fixture(scope="module")
def given_up(deleted: Story) -> Story:
    """The spot machines did not join in time either."""
    cluster = deleted.cluster
    cluster.wait_until(
        lambda: (
            {row.provider_id for row in cluster.live_rows()} == survivors(deleted)
            and len(cluster.events("offer_failed")) == 2 * len(NAMES)
            and [f.reason.code for f in cluster.client.plan().findings].count("backed_off") == 3
        ),
        "the spot machines to be given up",
    )
    return deleted


def survivors(story: Story) -> set[str]:
    """Return the first machines that nobody deleted."""
    gone = {row.provider_id for row in story.deleted.values()}
    return set(story.machines) - gone


# --- the launch -----------------------------------------------------------------------------


@by_cloud
def test_the_cloud_has_the_machines_that_were_decided_on(burst: Story, name: str) -> None:
    cloud = burst.cluster.emulated.by_name[name]
    pool = cloud.pool(cloud.zones[0])

    for row in burst.rows[name]:
        machine = burst.machines[row.provider_id]
        assert (machine.type, machine.zone) == (pool["instance_type"], cloud.zones[0])
        assert not machine.is_spot
        assert machine.token == cloud.own_token(row.token)
        assert machine.expires_at_s is not None
        assert abs(machine.expires_at_s - row.created_at_s - LEASE_S) < SLACK_S
        assert row.spec.tags.items() <= machine.tags.items()
        assert machine.tags["hybrid-instance"] == row.instance_id
        assert machine.tags[CLUSTER] == burst.status["cluster"]["cluster_id"]
    assert len({burst.machines[row.provider_id].token for row in burst.rows[name]}) == 2


@by_cloud
def test_a_lost_answer_costs_a_call_and_no_machine(burst: Story, name: str) -> None:
    cloud = burst.cluster.emulated.by_name[name]

    assert cloud.create_count() == 3
    assert set(cloud.machines()) == {row.provider_id for row in burst.rows[name]}


@by_cloud
def test_status_nodes_and_events_show_the_booting_machine_and_why(burst: Story, name: str) -> None:
    for row in burst.rows[name]:
        (shown,) = [i for i in burst.status["instances"] if i["instance_id"] == row.instance_id]
        (node,) = [n for n in burst.nodes["nodes"] if n["name"] == row.instance_id]
        kinds = [e["kind"] for e in burst.events["events"] if e["subject"] == row.instance_id]

        assert (shown["state"], shown["provider_id"]) == ("booting", row.provider_id)
        assert shown["reason"]["code"] == "queue_wait"
        assert (node["state"], node["site"], node["provider"]) == ("booting", "cloud", name)
        assert node["why"] == shown["reason"]["message"]
        assert kinds == ["instance_requested", "instance_booting"]


# --- a controller that was killed -----------------------------------------------------------


@by_cloud
def test_the_next_controller_finds_them_again_once(taken_over: Story, name: str) -> None:
    cluster = taken_over.cluster
    cloud = cluster.emulated.by_name[name]

    assert set(cloud.machines()) == {row.provider_id for row in taken_over.rows[name]}
    assert cloud.create_count() == 3
    before = {row.instance_id for row in taken_over.rows[name]}
    assert {row.instance_id for row in cluster.live_by_provider()[name]} == before
    assert cluster.events("orphan_ended", "unknown_node_seen") == []


@by_cloud
def test_leases_go_on_being_renewed_at_the_cloud(taken_over: Story, name: str) -> None:
    cluster = taken_over.cluster

    def are_later() -> bool:
        now = cluster.emulated.by_name[name].machines()
        rows = taken_over.rows[name]
        return all(
            (now[row.provider_id].expires_at_s or 0)
            > (taken_over.machines[row.provider_id].expires_at_s or 0)
            for row in rows
        )

    cluster.wait_until(are_later, f"later expiries at {name}")


# --- a machine that somebody deleted, and one that never joins ------------------------------


@by_cloud
def test_a_machine_deleted_in_the_console_is_noticed(deleted: Story, name: str) -> None:
    row = deleted.deleted[name]

    deleted.cluster.wait_until(
        lambda: row.instance_id not in {r.instance_id for r in deleted.cluster.live_rows()},
        "the row to be closed",
    )

    (ended,) = [r for r in deleted.cluster.rows() if r.instance_id == row.instance_id]
    assert ended.state is InstanceState.TERMINATED
    failed = deleted.cluster.client.events(subject=row.offer.offer_id).events
    assert [event.kind for event in failed] == ["offer_failed"]


@by_cloud
def test_its_place_is_taken_by_the_next_offer_of_that_cloud(deleted: Story, name: str) -> None:
    cloud = deleted.cluster.emulated.by_name[name]
    rows = {row.provider_id: row for row in deleted.cluster.rows()}

    (found,) = [i for i in deleted.spot if rows[i].offer.provider == name]

    assert deleted.spot[found].zone == cloud.zones[1]
    assert deleted.spot[found].token == cloud.own_token(rows[found].token)
    assert rows[found].offer.market.value == "spot"


@by_cloud
def test_a_machine_that_never_joins_is_ended_at_its_cloud(given_up: Story, name: str) -> None:
    cluster = given_up.cluster
    rows = {row.provider_id: row for row in cluster.rows()}
    (late,) = [rows[i] for i in given_up.spot if rows[i].offer.provider == name]

    assert late.state is InstanceState.TERMINATED
    assert late.problem
    said = [e for e in cluster.events("instance_terminating") if e.subject == late.instance_id]
    assert [event.facts["because"] for event in said] == ["join_overdue"]
    assert late.provider_id not in cluster.emulated.machines()


@by_cloud
def test_its_offer_rests_and_status_and_plan_say_why(given_up: Story, name: str) -> None:
    cluster = given_up.cluster
    cloud = cluster.emulated.by_name[name]
    before = cloud.create_count()

    status, plan = cluster.json("status"), cluster.json("plan")

    for answer in (status["plan"], plan):
        rests = [r for r in answer["resting"] if r["key"].startswith(f"{name}/")]
        late, deleted = sorted(rests, key=lambda rest: "did not join" not in rest["message"])
        assert late["key"].endswith("/spot")
        assert late["message"] == "its node did not join in time"
        assert deleted["key"].endswith("/on_demand")
        assert {(r["scope"], r["error"], r["is_over"]) for r in rests} == {
            ("offer", "JoinError", False)
        }
        said = [f["reason"]["message"] for f in answer["findings"]]
        assert [text.startswith(f"{name}/") for text in said].count(True) == 1
    assert "its node did not join in time" in " ".join(cluster.hybrid("status").out.split())
    assert cloud.create_count() == before == 4


# --- the end --------------------------------------------------------------------------------


def test_down_leaves_the_clouds_empty(given_up: Story) -> None:
    cluster = given_up.cluster
    assert set(cluster.emulated.machines()) == survivors(given_up)

    cluster.down()

    assert cluster.emulated.machines() == {}
    assert {row.state for row in cluster.rows()} == {InstanceState.TERMINATED}
    assert len(cluster.rows()) == 9
    cluster.assert_nothing_left()
