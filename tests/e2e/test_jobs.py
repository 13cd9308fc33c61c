"""Jobs from Python and from the command line, against the live cluster."""

from __future__ import annotations

import json
import sys

import pytest

from hybrid.client import Job, WaitTimeoutError
from hybrid.core.models import JobState
from tests.e2e.deployment import WORK, Deployment

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def test_a_job_sees_its_working_directory_its_environment_and_the_clusters_python(
    cluster: Deployment,
) -> None:
    job = cluster.client.submit("python tell.py", working_dir=WORK, env={"E2E_WORD": "你好"})

    assert job.wait() is JobState.SUCCEEDED
    line = next(line for line in job.logs().splitlines() if line.startswith("SAW "))
    seen = json.loads(line.removeprefix("SAW "))
    for process in ("driver", "task"):
        assert seen[process] == {
            "python": sys.prefix,
            "greeting": "from the module",
            "env": "你好",
            "token": "",
        }


def test_output_is_followed_while_the_job_runs_and_to_its_end(cluster: Deployment) -> None:
    gate = cluster.gate / "open"
    cluster.close_gate()
    job = cluster.client.submit(
        f"echo before; while [ ! -e {gate} ]; do sleep 0.1; done; printf 'after\\nend'"
    )
    seen = ""

    for piece in job.logs(follow=True):
        seen += piece
        if "before\n" in seen and not gate.exists():
            cluster.wait_until(lambda: job.status() is JobState.RUNNING, "the job to run")
            gate.touch()

    assert seen.endswith("after\nend")
    assert job.wait() is JobState.SUCCEEDED
    assert job.logs() == seen


def test_a_driver_with_gpus_of_its_own_runs_at_home_and_its_output_can_be_read(
    cluster: Deployment,
) -> None:
    job = cluster.client.submit("echo on gpus; sleep 1; echo done", gpus=2)

    followed = "".join(job.logs(follow=True))

    assert job.wait() is JobState.SUCCEEDED
    assert "on gpus\n" in followed
    assert followed.endswith("done\n")
    assert "on gpus\n" in job.logs()


def test_a_driver_for_the_cloud_only_rents_its_node(cluster: Deployment) -> None:
    before = len(cluster.rows())
    job = cluster.client.submit("echo from afar", gpus=1, site="cloud")

    assert job.wait() is JobState.SUCCEEDED
    cluster.wait_until_home()
    assert len(cluster.rows()) == before + 1
    assert "from afar\n" in job.logs()  # though the node that ran it has left


def test_a_cancelled_job_ends_and_stays_cancelled(cluster: Deployment) -> None:
    job = cluster.submit("site=onprem")
    cluster.wait_until(cluster.started, "the task to start")

    job.cancel()

    assert job.wait() is JobState.CANCELLED
    assert job.cancel() is JobState.CANCELLED
    cluster.wait_until(lambda: not any(cluster.busy_gpus().values()), "its task to end")


def words_on(cluster: Deployment, job: Job) -> str:
    """Return what `hybrid jobs` says of a job."""
    return next(row.message for row in cluster.client.jobs().jobs if row.job_id == job.id)


def test_a_job_that_waits_for_room_is_cancelled_too(cluster: Deployment) -> None:
    job = cluster.client.submit("echo never", gpus=64)
    cluster.wait_until(lambda: "nothing here can hold it" in words_on(cluster, job), "the reason")
    assert job.status() is JobState.QUEUED
    assert not cluster.status().demand, "Ray never hears of it"

    job.cancel()

    assert job.wait() is JobState.CANCELLED


def test_a_failed_job_says_why(cluster: Deployment) -> None:
    job = cluster.client.submit("echo so far so good; exit 7")

    assert job.wait() is JobState.FAILED
    assert "exit code 7" in job.details().message
    assert "so far so good" in job.logs()


def test_wait_gives_up_and_the_job_goes_on(cluster: Deployment) -> None:
    job = cluster.submit("site=onprem")

    with pytest.raises(WaitTimeoutError, match=f"job {job.id} still goes on"):
        job.wait(timeout=0.2)

    cluster.open_gate()
    assert job.wait() is JobState.SUCCEEDED


def test_the_same_job_id_is_the_same_job(cluster: Deployment) -> None:
    first = cluster.client.submit("echo once", job_id="j-twice")
    second = cluster.client.submit("echo twice", job_id="j-twice")

    assert first.id == second.id
    assert second.wait() is JobState.SUCCEEDED
    assert "echo twice" not in second.logs()


def test_the_command_line_submits_follows_and_fails_with_the_job(cluster: Deployment) -> None:
    done = cluster.hybrid(
        *("submit", "-f", "-w", str(WORK), "--env", "E2E_WORD=hello", "--", "python", "tell.py")
    )
    failed = cluster.hybrid("submit", "--wait", "--", "exit 3", code=1)

    assert '"env": "hello"' in done.out
    assert "failed" in failed.text


def test_a_client_follows_a_job_over_a_restart_of_the_controller(cluster: Deployment) -> None:
    gate = cluster.gate / "open"
    cluster.close_gate()
    job = cluster.client.submit(
        f"echo before; while [ ! -e {gate} ]; do sleep 0.1; done; echo after"
    )
    pieces = iter(job.logs(follow=True))
    seen = next(pieces)
    while "before\n" not in seen:
        seen += next(pieces)

    cluster.kill_controller()
    cluster.up()
    gate.touch()

    seen += "".join(pieces)
    assert seen.count("before\n") == 1
    assert seen.endswith("after\n")
    assert job.wait() is JobState.SUCCEEDED
