"""Jobs that save, in trouble: a killed controller, a lost head, a notice, deaf and frail ones."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.client import Job
from hybrid.core.models import JobState
from hybrid.node.processes import find
from tests.e2e.conftest import deployed
from tests.e2e.deployment import HOST, WORK, Deployment, kill
from tests.e2e.training import QUICK, attempts, kinds, places, site, steps, train
from tests.lacking import lacking

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CONFIG = {
    "jobs": {"profile": "fast"},
    "onprem": {"hosts": [{**HOST, "accelerators": "GPU:3", "cpus": 4}]},
}
MOVE = (
    "after job_move_asked",
    "before job_saved",
    "after job_saved",
    "before job_waits_again",
    "after job_waits_again",
    "before job_submitted",
    "after job_submitted",
    "before job_running",
)
"""Where a controller dies in one move: asked, saved, stopped, free, given to Ray, running."""


class Mortal(Deployment):
    """A cluster whose controllers die where the file `dies-at` says."""

    @property
    def env(self) -> dict[str, str]:
        """The environment of every command."""
        return {**super().env, "PYTHONPATH": str(WORK), "E2E_DIES_AT": str(self.points)}

    @property
    def points(self) -> Path:
        """Return the file with the points that are still to come."""
        return self.folder / "dies-at"


@pytest.fixture(scope="module")
def module_cluster() -> Iterator[Deployment]:
    with deployed(Mortal, **CONFIG) as cluster:
        assert isinstance(cluster, Mortal)
        cluster.points.touch()
        cluster.up()
        yield cluster


@contextmanager
def full_disk() -> Iterator[Path]:
    """Give a folder without a byte of room."""
    if os.geteuid() != 0:
        lacking("needs root, to mount a small disk")
    folder = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=4096", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    try:
        if done.returncode:
            lacking(f"this machine lets nobody mount a disk: {done.stderr.strip()}")
        try:
            (folder / "ballast").write_bytes(bytes(4096))
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
    finally:
        folder.rmdir()


def burst(cluster: Deployment, count: int, ways: str = "") -> tuple[Job, Job, Path]:
    """Return work that fills home, and a training that went out for it."""
    blocker = cluster.client.submit("sleep 600", gpus=2)
    cluster.wait_until(lambda: site(cluster, blocker) == "onprem", "home to be full")
    job, notebook = train(cluster, count, ways=ways)
    cluster.wait_until(
        lambda: site(cluster, job) == "cloud" and len(steps(notebook)) > 3, "a burst"
    )
    return blocker, job, notebook


def revived(cluster: Mortal) -> bool:
    """Start another controller if one is dead; return whether none has to die any more."""
    if find(cluster.lock_pid) is not None:
        return not cluster.points.read_text()
    cluster.start("up", str(cluster.config), "-y").wait()  # it may die before it is ready
    return False


def test_a_controller_killed_at_each_step_of_a_move_makes_one_move_of_it(
    cluster: Deployment,
) -> None:
    assert isinstance(cluster, Mortal)
    blocker, job, notebook = burst(cluster, 900, "idle")
    cluster.points.write_text("\n".join(MOVE))

    blocker.cancel()
    cluster.wait_until(lambda: revived(cluster), "a controller to have died at each step")

    cluster.wait_until(lambda: site(cluster, job) == "onprem", "the training at home")
    cluster.wait_until(lambda: attempts(notebook) == [1, 2], "it to work there")
    job.cancel()
    job.wait(timeout=60)
    done = steps(notebook)
    assert done == list(range(1, len(done) + 1)), "each step once, none lost"
    assert len(places(notebook)) == 2
    told = kinds(cluster, job)
    for once in ("job_move_asked", "job_saved", "job_waits_again"):
        assert told.count(once) == 1, told
    row = job.details()
    assert (row.attempt, row.interruptions, row.failures) == (2, 1, 0)


def test_a_spot_notice_is_time_to_save_and_the_job_waits_again_once(cluster: Deployment) -> None:
    blocker, job, notebook = burst(cluster, 150)
    (row,) = cluster.live_rows()
    folder = cluster.state_dir / "providers/local/instances" / row.instance_id
    deadline_s = time.time() + 15.0
    (folder / "notice").write_text(f"{int(deadline_s)} local-interrupt\n")

    cluster.wait_until(lambda: "job_waits_again" in kinds(cluster, job), "it to have left")
    saved = next(e for e in cluster.events("job_saved") if e.subject == job.id)
    blocker.cancel()
    kill(cluster.pids_of(row.instance_id))

    assert saved.at_s < deadline_s, "within the notice"
    assert job.wait(timeout=120) is JobState.SUCCEEDED
    assert steps(notebook) == list(range(1, 151)), "each step once, none lost"
    assert attempts(notebook) == [1, 2]
    told = kinds(cluster, job)
    for once in ("job_leave_asked", "job_saved", "job_waits_again"):
        assert told.count(once) == 1, told
    assert job.details().failures == 0


def test_deaf_and_frail_work_gives_way_and_a_full_disk_ends_no_job(cluster: Deployment) -> None:
    """One that does not save is stopped for urgent work; one that cannot, and need not, goes on."""
    with full_disk() as disk:
        blocker = cluster.client.submit("sleep 600", gpus=1)
        deaf, deaf_book = train(cluster, 3_000, ways="deaf every=10", gpus=1, priority=1)
        frail, frail_book = train(cluster, 3_000, ways="frail every=10", gpus=1, priority=1)
        at_home = (blocker, deaf, frail)
        cluster.wait_until(
            lambda: [site(cluster, one) for one in at_home] == ["onprem"] * 3, "a full home"
        )
        full = replace(QUICK, url=str(disk))
        far, far_book = train(cluster, 3_000, gpus=1, priority=1, checkpoint=full)
        cluster.wait_until(lambda: site(cluster, far) == "cloud", "a burst")
        cluster.client.pause("out")
        cluster.wait_until(lambda: len(steps(deaf_book)) > 15, "checkpoints")
        urgent = cluster.client.submit("echo urgent", gpus=2, priority=90)
        cluster.wait_until(lambda: "job_preempt_asked" in kinds(cluster, deaf), "the requests")
        blocker.cancel()

        assert urgent.wait(timeout=120) is JobState.SUCCEEDED
        books = (deaf_book, frail_book)
        cluster.wait_until(
            lambda: [attempts(book) for book in books] == [[1, 2]] * 2, "both to go on"
        )
        cluster.wait_until(lambda: "job_stop_withdrawn" in kinds(cluster, far), "no answer")
        before = len(steps(far_book))
        cluster.wait_until(lambda: len(steps(far_book)) > before + 10, "it to go on")
        told = {one.id: one.logs() for one in (deaf, frail, far)}
        assert site(cluster, far) == "cloud"
        cluster.client.resume("out")
        for one in (deaf, frail, far):
            one.cancel()

    for job in (deaf, frail):
        again = told[job.id].partition("--- attempt 2 ---")[2]
        assert "STARTED at step" in again
        assert "STARTED at step 0," not in again, "it goes on from what it confirmed"
    assert "job_not_saved" in kinds(cluster, deaf)
    assert "No space left" in told[far.id]
    done = steps(far_book)
    assert done == list(range(1, len(done) + 1)), "nothing of it was lost"
    assert attempts(far_book) == [1]
