"""Where a job ran, by our records and Ray's."""

from __future__ import annotations

from pathlib import Path

from hybrid.core.errors import ClusterError
from hybrid.core.models import JobSpec, JobState
from hybrid.core.ports import TaskCount
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World


def test_a_job_is_audited_by_name_and_site_of_its_nodes(tmp_path: Path) -> None:
    world = World(tmp_path, params=quick_params(), step_s=STEP_S)
    world.run(2 * STEP_S)
    job = world.desk.submit(JobSpec(entrypoint="python a.py", gpus=4, site="onprem"))
    world.run(30)
    world.desk.publish()
    row = world.desk.job(job.job_id)
    assert row.state is JobState.RUNNING
    home, far = row.slots[0].node_id, "ff" * 28
    world.jobs.task_counts[job.job_id] = [
        TaskCount(node_id=home, kind="task", name="step", count=3),
        TaskCount(node_id=far, kind="actor", name="Loader", count=1),
    ]

    view = world.desk.audit(job.job_id)

    [attempt] = view.attempts
    assert (attempt.attempt, attempt.sites, attempt.why) == (
        1,
        ("onprem",),
        "on-prem GPUs are free",
    )
    assert attempt.nodes[0].startswith("host-")
    assert [(t.node, t.site, t.name, t.count) for t in view.tasks] == [
        (attempt.nodes[0], "onprem", "step", 3),
        (far, "", "Loader", 1),
    ]
    assert view.is_complete


def test_a_silent_ray_is_said(tmp_path: Path) -> None:
    world = World(tmp_path, params=quick_params(), step_s=STEP_S)
    world.run(2 * STEP_S)
    job = world.desk.submit(JobSpec(entrypoint="python a.py"))
    world.run(10)

    def silent(job_id: str) -> object:
        raise ClusterError("no answer")

    world.desk.runner.tasks = silent  # type: ignore[assignment,method-assign]
    view = world.desk.audit(job.job_id)
    assert not view.is_complete
    assert "Ray was not asked: no answer" in view.notes
