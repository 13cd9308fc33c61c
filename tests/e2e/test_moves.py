"""Jobs that save: they go out, come home, give way and go on, on a real cluster."""

from __future__ import annotations

import json

import pytest

from hybrid.client import Job
from hybrid.core.models import JobState
from tests.e2e.deployment import WORK, Deployment
from tests.e2e.training import attempts, kinds, places, site, steps, train

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CONFIG = {"jobs": {"profile": "fast"}}


def tasks_at(job: Job, wanted: str) -> int:
    return sum(task.count for task in job.audit().tasks if task.site == wanted)


def test_a_training_bursts_comes_home_with_its_steps_and_ends_once(cluster: Deployment) -> None:
    blocker = cluster.client.submit("sleep 600", gpus=2)
    cluster.wait_until(lambda: site(cluster, blocker) == "onprem", "home to be full")
    job, notebook = train(cluster, 120)
    cluster.wait_until(
        lambda: site(cluster, job) == "cloud" and len(steps(notebook)) > 5, "a burst"
    )

    blocker.cancel()
    cluster.wait_until(lambda: site(cluster, job) == "onprem", "the training at home")
    assert job.wait(timeout=120) is JobState.SUCCEEDED

    assert steps(notebook) == list(range(1, 121)), "each step once, none lost"
    assert attempts(notebook) == [1, 2]
    assert len(places(notebook)) == 2
    row = job.details()
    assert (row.attempt, row.interruptions) == (2, 1)
    assert row.progress_s > 0
    said = job.logs()
    assert said.index("STARTED at step 0, attempt 1") < said.index("SAVED at step")
    assert said.index("--- attempt 2 ---") < said.index("attempt 2", said.index("STARTED", 20))
    assert said.rstrip().endswith("DONE at step 120")
    assert kinds(cluster, job).count("job_move_asked") == 1
    cluster.wait_until_home()


def test_urgent_work_takes_the_place_of_one_that_saves_and_of_one_that_does_not(
    cluster: Deployment,
) -> None:
    low, notebook = train(cluster, 60, priority=1)
    cluster.client.pause("out")
    cluster.wait_until(lambda: len(steps(notebook)) > 3, "the first to work")
    high = cluster.client.submit("echo urgent", gpus=2, priority=90)

    assert high.wait(timeout=120) is JobState.SUCCEEDED
    assert low.wait(timeout=120) is JobState.SUCCEEDED
    assert steps(notebook) == list(range(1, 61))
    assert "job_preempt_asked" in kinds(cluster, low)

    filler = cluster.client.submit("sleep 600", gpus=2, job_class="best-effort")
    cluster.wait_until(lambda: site(cluster, filler) == "onprem", "best-effort work at home")
    again = cluster.client.submit("echo again", gpus=1)
    assert again.wait(timeout=120) is JobState.SUCCEEDED
    cluster.wait_until(lambda: site(cluster, filler) == "onprem", "it to be back")
    assert filler.details().attempt == 2
    filler.cancel()
    cluster.client.resume("out")


def test_a_job_that_holds_nodes_keeps_what_it_starts_on_them(cluster: Deployment) -> None:
    other = cluster.client.submit("sleep 600", gpus=1, site="cloud")
    cluster.wait_until(lambda: site(cluster, other) == "cloud", "a rented node to escape to")
    job = cluster.client.submit(
        "python escape.py", working_dir=WORK, gpus=1, nodes=1, cpus=1, site="onprem"
    )
    assert job.wait(timeout=120) is JobState.SUCCEEDED, job.logs()

    said = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in job.logs().splitlines()}
    ran = json.loads(said["RAN"])
    home = {n.node_id for n in cluster.client.nodes().nodes if n.site == "onprem"}
    outside = {way for way, nodes in ran.items() if not set(nodes) <= home}
    # What is kept is measured in tests/job/test_escape.py.
    assert outside == set(), ran
    assert said["BUNDLES"] == "1"
    audit = job.audit()
    assert [attempt.sites for attempt in audit.attempts] == [("onprem",)]
    cluster.wait_until(lambda: tasks_at(job, "onprem") >= 10, "Ray to have told of its tasks")
    assert {task.node for task in job.audit().tasks if task.name == "three"} == {"home-1"}
    other.cancel()
