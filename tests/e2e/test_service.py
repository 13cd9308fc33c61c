"""A service that breaks its promise under a burst, gets a node, recovers, and goes home again.

On a real Ray Serve, with callers in a second process.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.models import Instance
from hybrid.core.views import SloView
from tests.e2e.conftest import deployed
from tests.e2e.deployment import HOST, POOL, WORK, Deployment
from tests.lacking import lacking

pytestmark = [pytest.mark.ray, pytest.mark.slow]

# The queue itself may wait for ever: only the promise can rent here.
CONFIG: dict[str, Any] = {
    "onprem": {"hosts": [{**HOST, "accelerators": "GPU:1"}]},
    "clouds": {"any_of": [{**POOL, "max_nodes": 1}]},
    "burst": {"queue": {"max_wait": "1h"}, "stabilisation": "1s"},
    "drain": {"busy": "come_home", "deadline": "1m"},
    "services": [
        {"name": "chat", "target": "500ms", "window": "20s", "max_replicas": 3, "cpus": 0}
    ],
}


@dataclass
class Callers:
    """The process that calls the service.

    Attributes:
        folder: Holds its rate, and what it got.
    """

    folder: Path
    process: subprocess.Popen[bytes]

    def rate(self, rps: float) -> None:
        """Call so often from now on."""
        draft = self.folder / "rate.new"
        draft.write_text(str(rps))
        draft.rename(self.folder / "rate")

    def end(self) -> None:
        """Wait for the last answers."""
        self.rate(0)
        self.process.wait(timeout=120)

    def results(self) -> list[dict[str, Any]]:
        """Return every answer that came."""
        return [json.loads(line) for line in (self.folder / "results").read_text().splitlines()]


@contextmanager
def calling(url: str, folder: Path, rps: float) -> Iterator[Callers]:
    """Call the service at a rate."""
    (folder / "rate").write_text(str(rps))
    command = [sys.executable, str(WORK / "callers.py"), url]
    arguments = [str(folder / "rate"), str(folder / "results")]
    with subprocess.Popen([*command, *arguments]) as process:
        try:
            yield Callers(folder, process)
        finally:
            process.kill()


@dataclass
class Story:
    """What was seen.

    Attributes:
        broken: The service when the node was asked for.
        recovered: The service when it kept its promise again, with the node.
        page: `hybrid status` then.
        results: Every answer that callers got.
        rows: Instances of the ledger at the end.
        kinds: Kinds of all events, with what they are about.
    """

    broken: SloView
    recovered: SloView
    page: str
    results: list[dict[str, Any]]
    rows: list[Instance]
    kinds: list[tuple[str, str]]


def service(cluster: Deployment) -> SloView:
    (view,) = cluster.status().services
    return view


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A burst that one replica at home cannot serve."""
    if not find_spec("grpc_reflection"):
        lacking("needs ray[serve]")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with deployed(**CONFIG) as cluster:
        cluster.up()
        command = f"python service.py --port {port}"
        job = cluster.client.submit(command, working_dir=WORK, name="service")
        assert job.wait().value == "succeeded", job.logs()
        folder = tmp_path_factory.mktemp("callers")
        with calling(f"http://127.0.0.1:{port}/", folder, rps=9) as callers:
            cluster.wait_until(cluster.rows, "a node for the broken promise")
            broken = service(cluster)
            # Less than before, and with what waits still too much for one replica.
            callers.rate(4)
            cluster.wait_until(
                lambda: service(cluster).running_count == 3, "three replicas that serve"
            )
            cluster.wait_until(lambda: service(cluster).state == "met", "the promise to be kept")
            recovered = service(cluster)
            page = cluster.hybrid("status").out
            callers.rate(2)
            cluster.wait_until_home()
            callers.end()
        yield Story(
            broken=broken,
            recovered=recovered,
            page=page,
            results=callers.results(),
            rows=cluster.rows(),
            kinds=[(event.kind, event.subject) for event in cluster.events()],
        )


def test_a_broken_promise_rents_a_node_though_the_queue_may_wait(story: Story) -> None:
    # One, unless its machine failed on the way.
    assert {row.reason.code for row in story.rows} == {"slo_breach"}
    assert all(
        "cannot wait: service chat breaks its promise: p95 of" in row.reason.message
        for row in story.rows
    )
    assert story.broken.state == "broken"
    assert story.broken.ahead_count >= 1
    assert (story.broken.measured_ms or 0) > 500


def test_the_promise_is_kept_again_with_more_replicas(story: Story) -> None:
    assert story.recovered.measured_ms is not None
    assert story.recovered.measured_ms <= 500
    assert [k for k, subject in story.kinds if subject == "chat"][-2:] == [
        "service_broken",
        "service_met",
    ]


def test_status_shows_the_service(story: Story) -> None:
    line = next(line for line in story.page.splitlines() if line.startswith("chat"))
    assert "met" in line
    assert "p95" in line


def test_no_request_failed_while_replicas_came_went_and_moved(story: Story) -> None:
    assert len(story.results) > 100
    assert [row for row in story.results if row["status"] != 200] == []
    assert {row["said"] for row in story.results} == {"onprem", "cloud"}
    # The node was drained under calls, and the last of them were answered at home.
    assert story.results[-1]["said"] == "onprem"
