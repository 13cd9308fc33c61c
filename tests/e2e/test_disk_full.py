"""The disk of the state folder is full: nothing is rented without its intent, and it recovers."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hybrid.cli.controller import health
from hybrid.client import discover
from hybrid.core.models import InstanceState
from tests.e2e.conftest import deployed
from tests.e2e.deployment import Deployment
from tests.lacking import lacking

pytestmark = [pytest.mark.ray, pytest.mark.slow]

_DISK_BYTES = 12 * 2**20
_TICKS = 20
"""Long past the moment at which a node would have been rented."""


@contextmanager
def small_disk() -> Iterator[Path]:
    """Give a folder that is a disk of its own."""
    if os.geteuid() != 0:
        lacking("needs root, to mount a small disk")
    folder = Path(tempfile.mkdtemp(prefix="hd-", dir="/tmp"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES},mode=0700", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    try:
        if done.returncode:
            lacking(f"this machine lets nobody mount a disk: {done.stderr.strip()}")
        try:
            yield folder
        finally:
            # lazily: a log that is still open must not keep it
            subprocess.run(["umount", "--lazy", folder], check=True)
    finally:
        folder.rmdir()


@pytest.fixture(scope="module")
def on_small_disk() -> Iterator[tuple[Deployment, Path]]:
    """A running cluster whose state folder is on a disk of its own."""
    with (
        small_disk() as disk,
        deployed(
            state_dir=disk / "state",
            onprem={"hosts": []},
            # long enough to fill the disk between the first sight of the work and the launch
            burst={"queue": {"max_wait": "10s"}},
        ) as cluster,
    ):
        cluster.up()
        yield cluster, disk / "ballast"


def fill(ballast: Path) -> None:
    """Take every byte that is left."""
    for block in (2**20, 4096, 1):
        with ballast.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(block))
            except OSError:
                continue


def test_a_full_disk_stops_launches_and_is_said_and_freed_space_lets_them_go_on(
    on_small_disk: tuple[Deployment, Path],
) -> None:
    cluster, ballast = on_small_disk
    pid = cluster.controller_pid
    job = cluster.submit("site=cloud")
    cluster.wait_until(lambda: cluster.status().demand, "the work to be seen")
    fill(ballast)

    cluster.wait_until(
        lambda: cluster.status().controller.state == "degraded", "the first failed write"
    )
    before = cluster.status().controller.tick_count
    cluster.wait_until(
        lambda: cluster.status().controller.tick_count >= before + _TICKS, "a few ticks"
    )

    assert cluster.records() == {}
    assert cluster.rows() == []
    controller = cluster.status().controller
    assert (controller.pid, controller.state) == (pid, "degraded")
    assert "full" in controller.phase
    record = discover.read_record(cluster.state_dir)
    assert record is not None
    seen = health(record.url)
    assert seen is not None
    assert seen.state == "degraded"
    assert "full" in " ".join(cluster.hybrid("status").out.split())
    assert cluster.hybrid("submit", "--", "true", code=5).err

    ballast.unlink()

    cluster.wait_until(cluster.started, "the task to start")
    cluster.open_gate()
    assert job.wait().value == "succeeded"
    cluster.wait_until_home()
    assert [row.state for row in cluster.rows()] == [InstanceState.TERMINATED]
    assert list(cluster.records()) == [row.instance_id for row in cluster.rows()]
    assert cluster.status().controller.state == "ready"
    assert cluster.controller_pid == pid


def test_a_start_on_a_full_disk_is_refused_and_leaves_nothing(
    on_small_disk: tuple[Deployment, Path],
) -> None:
    cluster, ballast = on_small_disk
    cluster.down()
    fill(ballast)

    done = cluster.start("up", str(cluster.config), "-y").wait()

    assert done.code in (2, 5), done.text
    assert "Traceback" not in done.text
    assert "No space left" in done.err or "full" in done.err
    ballast.unlink()
    cluster.assert_nothing_left()
