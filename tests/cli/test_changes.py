"""An edited file: what differs is told, and applied or refused, never ignored."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.cli.changes import changes
from hybrid.client import discover
from tests.cli.conftest import Run
from tests.cli.stand_in import start_node
from tests.cli.test_up import CLOUD, record_of


@pytest.fixture(autouse=True)
def _no_controller_outlives_its_test(home: Path) -> Iterator[None]:
    yield
    for path in home.glob("*/controller.json"):
        pid = json.loads(path.read_text())["pid"]
        if pid != os.getpid() and discover.is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def conf(**hosts: object) -> dict[str, object]:
    return {"name": "lab", "onprem": {"hosts": [{"name": n, "cpus": c} for n, c in hosts.items()]}}


def test_equal_configurations_do_not_differ() -> None:
    assert changes(conf(a=1, b=2), conf(b=2, a=1)) == []


def test_a_host_that_comes_or_goes_is_one_change_and_needs_no_down() -> None:
    found = changes(conf(a=1, b=2), conf(b=2, c=3))

    assert [(c.path, c.before, c.after, c.needs_down) for c in found] == [
        ("onprem.hosts[c]", "-", "there", False),
        ("onprem.hosts[a]", "there", "-", False),
    ]


def test_a_host_that_changes_needs_a_down() -> None:
    (change,) = changes(conf(a=1), conf(a=2))

    assert (change.path, change.before, change.after) == ("onprem.hosts[a].cpus", "1", "2")
    assert change.needs_down


@pytest.mark.parametrize(
    ("path", "needs_down"),
    [
        (("budget", "nodes"), False),
        (("burst", "queue"), False),
        (("head", "port"), True),
        (("ray", "object_store"), True),
        (("controller", "ledger"), True),
        (("controller", "tick"), False),
    ],
)
def test_what_the_head_was_started_with_needs_a_down(
    path: tuple[str, str], needs_down: bool
) -> None:
    (change,) = changes({path[0]: {path[1]: 1}}, {path[0]: {path[1]: 2}})

    assert change.needs_down is needs_down


def test_a_default_that_the_running_version_does_not_know_is_no_change() -> None:
    wanted = {"ray": {"new": 1, "set": 2}}

    found = changes({"ray": {"set": 1}}, wanted, defaults={"ray.new"})

    assert [change.path for change in found] == ["ray.set"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
class TestUp:
    """`hybrid up` over a running cluster whose file was edited."""

    @pytest.fixture
    def cloud(self, tmp_path: Path, start: Run) -> Path:
        path = tmp_path / "cloud.yaml"
        path.write_text(CLOUD)
        assert start("up", str(path), "-y").code == 0
        return path

    def test_asks_before_it_applies(self, start: Run, home: Path, cloud: Path) -> None:
        pid = record_of(home).pid
        cloud.write_text(CLOUD.replace("usd_per_day: 20", "usd_per_day: 200"))

        shown = start("up", str(cloud))

        assert shown.code == 2
        assert "budget.usd_per_day  20" in shown.out
        assert "At worst:" in shown.out
        assert "pass -y" in shown.err
        assert record_of(home).pid == pid

    def test_restarts_the_controller_alone(self, start: Run, home: Path, cloud: Path) -> None:
        pid = record_of(home).pid
        node = start_node(home / "lab")
        cloud.write_text(CLOUD.replace("usd_per_day: 20", "usd_per_day: 10"))

        shown = start("up", str(cloud), "-y")

        running = json.loads(start("config", "show", "--running", "--json").out)
        assert node.poll() is None
        node.kill()
        node.wait()
        assert shown.code == 0
        assert "Cluster lab is up." in shown.out
        assert record_of(home).pid != pid
        assert running["budget"]["usd_per_day"] == 10

    def test_applies_another_file_too(self, start: Run, home: Path, cloud: Path) -> None:
        other = cloud.with_name("other.yaml")
        other.write_text(CLOUD.replace("nodes: 2", "nodes: 1"))

        assert start("up", str(other), "-y").code == 0
        assert record_of(home).config_path == str(other)

    def test_refuses_what_needs_a_down(self, start: Run, home: Path, cloud: Path) -> None:
        pid = record_of(home).pid
        cloud.write_text(CLOUD + "head: {cpus: 3}\n")

        shown = start("up", str(cloud), "-y")

        assert shown.code == 4
        assert "cannot change while the cluster runs" in shown.err
        assert "head.cpus (1 -> 3)" in shown.err
        assert "`hybrid down` and then `hybrid up`" in shown.err
        assert record_of(home).pid == pid

    def test_refuses_to_forget_a_cloud_with_rented_instances(
        self, start: Run, home: Path, cloud: Path
    ) -> None:
        pid = record_of(home).pid
        cloud.write_text(CLOUD.partition("clouds:")[0])

        shown = start("up", str(cloud), "-y")

        assert shown.code == 2
        assert "instances of local are still rented" in shown.err
        assert record_of(home).pid == pid

    def test_says_what_goes_on_when_the_new_controller_dies(
        self, start: Run, home: Path, cloud: Path
    ) -> None:
        cloud.write_text(CLOUD.replace("nodes: 2", "nodes: 1"))

        shown = start("up", str(cloud), "-y", STAND_IN_DIE="1", STAND_IN_SAYS="boom")

        assert shown.code == 1
        assert "go on without a controller" in shown.err

    def test_refuses_to_take_over_nodes_that_were_started_with_something_else(
        self, start: Run, home: Path, cloud: Path
    ) -> None:
        node = start_node(home / "lab")
        kill(record_of(home).pid)
        cloud.write_text(CLOUD + "head: {cpus: 3}\n")

        refused = start("up", str(cloud), "-y")
        cloud.write_text(CLOUD.replace("nodes: 2", "nodes: 1"))
        taken_over = start("up", str(cloud), "-y")

        node.kill()
        node.wait()
        assert refused.code == 4
        assert "head.cpus (1 -> 3)" in refused.err
        assert taken_over.code == 0

    def test_starts_afresh_with_anything_when_nothing_runs(
        self, start: Run, home: Path, cloud: Path
    ) -> None:
        kill(record_of(home).pid)
        cloud.write_text(CLOUD + "head: {cpus: 3}\n")

        assert start("up", str(cloud), "-y").code == 0

    def test_a_ledger_that_could_not_be_opened_is_not_remembered(
        self, start: Run, home: Path, cloud: Path
    ) -> None:
        kill(record_of(home).pid)
        url = "postgresql+psycopg://nobody:secret@127.0.0.1:1/none"

        failed = start("up", str(cloud), "-y", HYBRID_LEDGER_URL=url, STAND_IN_DIE="1")
        again = start("up", str(cloud), "-y")

        assert failed.code == 1
        assert again.code == 0


def kill(pid: int) -> None:
    """End a controller as a crash does."""
    os.kill(pid, signal.SIGKILL)
    while discover.is_alive(pid):
        time.sleep(0.02)
