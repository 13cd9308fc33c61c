"""The first burst, from `hybrid up` to `hybrid down`, on real Ray."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from hybrid.core.models import Event, Instance, InstanceState
from hybrid.core.views import CostView, StatusView
from tests.e2e.conftest import deployed
from tests.e2e.deployment import Deployment, command_lines

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SECRETS = ("ray_token", "api_token", "join_secret")


@dataclass
class Story:
    """What was seen during a burst.

    Attributes:
        at_work: The status while home and cloud worked at the same time.
        afterwards: The status when everything had come home.
        command_lines: Of every process of this machine while both worked.
        holders: Names of the files that held a secret then: ours, and Ray's on every node.
        file_count: How many files were looked into.
        modes: Of the state folder's files, by name.
        join_tokens: The one-time tokens of the instances.
    """

    cluster: Deployment
    secrets: dict[str, str]
    at_work: StatusView
    status_json: str
    afterwards: StatusView
    rows: list[Instance]
    events: list[Event]
    cost: CostView
    output: str
    command_lines: list[str]
    holders: set[str]
    file_count: int
    modes: dict[str, int]
    join_tokens: list[str]


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """A burst: three tasks of two GPUs each, and one host with two GPUs."""
    with deployed() as cluster:
        cluster.up()
        job = cluster.submit("home_first", count=3, name="burst")
        tokens: set[str] = set()

        def is_everywhere() -> bool:
            tokens.update(p.read_text() for p in cluster.state_dir.rglob("join_token"))
            return cluster.busy_gpus() == {"onprem": 2, "cloud": 4}

        cluster.wait_until(is_everywhere, "work at home and on two rented nodes")
        at_work = cluster.status()
        status_json = cluster.hybrid("status", "--json").out
        lines = command_lines()
        secrets = {name: (cluster.state_dir / name).read_text() for name in SECRETS}
        files = files_of(cluster)
        holders = holding(files, [*secrets.values(), *tokens])
        cluster.open_gate()
        assert job.wait().value == "succeeded", job.logs()
        cluster.wait_until_home()
        yield Story(
            cluster=cluster,
            secrets=secrets,
            at_work=at_work,
            status_json=status_json,
            afterwards=cluster.status(),
            rows=cluster.rows(),
            events=cluster.events(),
            cost=cluster.client.cost(),
            output=job.logs(),
            command_lines=lines,
            holders=holders | holding(files_of(cluster), [*secrets.values(), *tokens]),
            file_count=len(files),
            modes={p.name: stat.S_IMODE(p.stat().st_mode) for p in cluster.state_dir.iterdir()},
            join_tokens=sorted(tokens),
        )


def test_status_shows_home_and_cloud_at_work_on_real_tasks(story: Story) -> None:
    nodes = json.loads(story.status_json)["nodes"]

    working = {(n["site"], n["labels"]["site"], n["state"]) for n in nodes if n["gpus_used"]}
    assert working == {("onprem", "onprem", "busy"), ("cloud", "cloud", "busy")}
    assert story.at_work.is_bursting
    assert story.output.splitlines()[-1] == "ran cloud cloud onprem"


def test_every_launch_says_why_and_follows_a_breach_of_the_queue_limit(story: Story) -> None:
    assert len(story.rows) == 2
    assert {row.reason.code for row in story.rows} == {"queue_wait"}
    assert all(float(row.reason.facts["waiting_s"]) >= 1 for row in story.rows)
    assert all("wait" in row.reason.message for row in story.rows)


def test_every_instance_lives_its_life_in_order(story: Story) -> None:
    for row in story.rows:
        kinds = [e.kind for e in story.events if e.subject == row.instance_id]

        assert [k.removeprefix("instance_") for k in kinds if k.startswith("instance_")] == [
            "requested",
            "booting",
            "running",
            "draining",
            "terminating",
            "terminated",
        ]


def test_every_row_ends_as_terminated_and_has_its_cost(story: Story) -> None:
    assert {row.state for row in story.rows} == {InstanceState.TERMINATED}
    assert all(item.cost_usd > 0 for item in story.cost.instances)
    assert story.cost.total_usd == pytest.approx(sum(i.cost_usd for i in story.cost.instances))
    assert story.cost.running_usd_per_hour == 0
    assert story.afterwards.budget.now.node_count == 0


def test_the_cloud_rented_one_machine_for_each_row(story: Story) -> None:
    assert sorted(story.cluster.records()) == sorted(row.instance_id for row in story.rows)


def test_no_secret_stands_in_any_command_line(story: Story) -> None:
    assert len(story.command_lines) > 10
    assert len(story.join_tokens) == 2

    for name, secret in [*story.secrets.items(), *(("join", t) for t in story.join_tokens)]:
        assert not [line for line in story.command_lines if secret in line], name


def test_no_secret_stands_in_any_file_but_its_own(story: Story) -> None:
    """Logs of ours and of Ray, the ledger, the orders of nodes, the cloud's records."""
    assert story.file_count > 50

    assert story.holders == set(SECRETS)


def test_secrets_are_readable_by_their_owner_only(story: Story) -> None:
    assert stat.S_IMODE(story.cluster.state_dir.stat().st_mode) == 0o700
    assert {story.modes[name] for name in (*SECRETS, "ledger.db", "controller.log")} == {0o600}


def test_down_leaves_no_process_no_port_no_lock_and_no_folder_of_ray(story: Story) -> None:
    story.cluster.down()

    story.cluster.assert_nothing_left()


def files_of(cluster: Deployment) -> list[Path]:
    """Return every file of the cluster, those of Ray included."""
    folders = (cluster.state_dir, *cluster.ray_dirs)
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def holding(files: list[Path], secrets: list[str]) -> set[str]:
    """Return the names of the files that hold one of the secrets."""
    found = set()
    for path in files:
        with suppress(OSError):  # gone meanwhile
            content = path.read_bytes()
            found |= {path.name for secret in secrets if secret.encode() in content}
    return found
