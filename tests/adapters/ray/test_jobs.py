"""Ray Jobs through the dashboard of a real Ray."""

from __future__ import annotations

import io
import socket
import uuid
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from hybrid.adapters.ray.cluster import RayCluster
from hybrid.adapters.ray.dashboard import reason_of
from hybrid.adapters.ray.jobs import RayJobs, _status
from hybrid.core.errors import ClusterError, JobError
from hybrid.core.models import JobSpec, JobState
from hybrid.core.ports import JobStatus
from tests.ray_cluster import LocalRay, wait_until

real_ray = [pytest.mark.ray, pytest.mark.slow]
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
NOBODY = "http://127.0.0.1:1"


def make_job_id() -> str:
    return f"job-{uuid.uuid4().hex[:8]}"


def submit(jobs: RayJobs, entrypoint: str, **fields: Any) -> str:
    job_id = make_job_id()
    selector = fields.pop("selector", {})
    jobs.submit(job_id, JobSpec(entrypoint=entrypoint, **fields), selector=selector)
    return job_id


def status_when(jobs: RayJobs, job_id: str, *states: JobState) -> JobStatus:
    wait_until(lambda: jobs.statuses()[job_id].state in states, f"{job_id} to be {states}")
    return jobs.statuses()[job_id]


@pytest.fixture
def deaf_jobs() -> Iterator[RayJobs]:
    """Jobs of a cluster that is not there."""
    jobs = RayJobs(NOBODY, "token", address="127.0.0.1:1", timeout_s=1.0)
    yield jobs
    jobs.close()


# --- on a real Ray ------------------------------------------------------------------------


class TestOnRay:
    pytestmark = real_ray

    def test_a_job_runs_with_its_environment_and_its_output_can_be_followed(
        self, jobs: RayJobs
    ) -> None:
        entrypoint = "echo first $GREETING; sleep 2; printf 'second\\nthird: 你好'"
        job_id = submit(jobs, entrypoint, env={"GREETING": "hello"}, name="greeter")

        followed = "".join(jobs.follow_logs(job_id))

        status = jobs.statuses()[job_id]
        assert status.state is JobState.SUCCEEDED
        assert status.ended_at_s is not None
        assert status.message == ""
        assert "first hello\n" in followed
        assert followed.endswith("second\nthird: 你好")
        assert followed == "".join(jobs.logs(job_id))
        assert "".join(jobs.follow_logs(job_id)) == followed  # also once it has ended

    def test_the_same_id_again_changes_nothing(self, jobs: RayJobs) -> None:
        job_id = submit(jobs, "echo once")

        jobs.submit(job_id, JobSpec(entrypoint="echo twice"), selector={})

        status_when(jobs, job_id, *ENDED)
        assert "once" in "".join(jobs.logs(job_id))
        assert "twice" not in "".join(jobs.logs(job_id))

    def test_a_failing_job_says_why_in_one_line(self, jobs: RayJobs) -> None:
        job_id = submit(jobs, "echo some output; exit 3")

        status = status_when(jobs, job_id, *ENDED)

        assert status.state is JobState.FAILED
        assert status.message == "Job entrypoint command failed with exit code 3"

    def test_a_running_job_is_stopped(self, jobs: RayJobs) -> None:
        job_id = submit(jobs, "sleep 600", cpus=0.5, selector={"site": "onprem"})
        status_when(jobs, job_id, JobState.RUNNING)

        jobs.stop(job_id)

        assert status_when(jobs, job_id, *ENDED).state is JobState.CANCELLED
        jobs.stop(job_id)

    def test_a_job_that_waits_for_room_is_demand_until_it_is_stopped(
        self, jobs: RayJobs, cluster: RayCluster
    ) -> None:
        job_id = submit(jobs, "echo never", gpus=64, selector={"site": "cloud"})
        wait_until(lambda: cluster.view().demands, "the job's demand")
        (demand,) = cluster.view().demands
        assert jobs.statuses()[job_id].state is JobState.SUBMITTED

        jobs.stop(job_id)

        status = status_when(jobs, job_id, *ENDED)
        assert (status.state, status.message) == (
            JobState.CANCELLED,
            "Stopped before it started.",
        )
        assert demand.shape == {"GPU": 64.0}
        assert [rule.values for rule in demand.selectors[0]] == [("cloud",)]
        wait_until(lambda: not cluster.view().demands, "the demand to go")

    def test_a_job_imports_from_its_uploaded_folder(self, jobs: RayJobs) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("greeting/__init__.py", "WORDS = 'from the package'")
        name = f"hybrid-{uuid.uuid4().hex}.zip"

        jobs.upload(name, content.getvalue())
        jobs.upload(name, b"not even looked at, as the name is there")
        job_id = submit(jobs, "python -c 'import greeting; print(greeting.WORDS)'", package=name)

        assert status_when(jobs, job_id, *ENDED).state is JobState.SUCCEEDED
        assert "from the package" in jobs.log_end(job_id, limit_bytes=1_000_000).text

    def test_a_missing_package_fails_the_job(self, jobs: RayJobs) -> None:
        job_id = submit(jobs, "echo never", package="nowhere.zip")

        status = status_when(jobs, job_id, *ENDED)

        assert status.state is JobState.FAILED
        assert "runtime_env" in status.message

    def test_what_ray_refuses_for_good_is_a_job_error(self, jobs: RayJobs) -> None:
        with pytest.raises(JobError, match="Invalid label selector value"):
            submit(jobs, "echo never", selector={"site": "foo(bar"})

    def test_unknown_jobs_have_no_output_and_need_no_stop(self, jobs: RayJobs) -> None:
        jobs.stop("nobody")

        with pytest.raises(JobError, match="Ray knows no job nobody"):
            list(jobs.logs("nobody"))
        with pytest.raises(JobError, match="Ray knows no job nobody"):
            list(jobs.follow_logs("nobody"))

    def test_a_wrong_token_is_said(self, local_ray: LocalRay) -> None:
        stranger = RayJobs(local_ray.dashboard_url, "other", address=local_ray.address)

        with pytest.raises(ClusterError, match="refused our token"):
            stranger.statuses()
        stranger.close()

    def test_the_log_of_a_node_that_left_is_gone(self, local_ray: LocalRay, jobs: RayJobs) -> None:
        local_ray.launch_node("short", labels="site=short", instance_id="i-short", gpus=0)
        try:
            local_ray.wait()
            job_id = submit(jobs, "echo gone", cpus=1, selector={"site": "short"})
            status_when(jobs, job_id, JobState.SUCCEEDED)
        finally:
            local_ray.kill("short")

        with pytest.raises(JobError, match="that node has left"):
            list(jobs.logs(job_id))


# --- without one --------------------------------------------------------------------------


@pytest.mark.parametrize("job_id", ["", "a/b", "-a", "a b", "x" * 129])
def test_submit_refuses_ids_that_ray_would_lose(deaf_jobs: RayJobs, job_id: str) -> None:
    with pytest.raises(JobError, match="cannot be a job id"):
        deaf_jobs.submit(job_id, JobSpec(entrypoint="true"), selector={})


@pytest.mark.parametrize("name", ["", "a.tar", "../a.zip", "a/b.zip", ".zip"])
def test_upload_refuses_names_that_are_no_package(deaf_jobs: RayJobs, name: str) -> None:
    with pytest.raises(JobError, match="cannot be a package name"):
        deaf_jobs.upload(name, b"")


def test_upload_refuses_what_the_dashboard_cannot_take(deaf_jobs: RayJobs) -> None:
    with pytest.raises(JobError, match="has 101 MiB, Ray takes 100"):
        deaf_jobs.upload("a.zip", bytes(101 * 1024**2))


def test_no_dashboard_is_said_with_its_address(deaf_jobs: RayJobs) -> None:
    with pytest.raises(ClusterError, match=r"http://127\.0\.0\.1:1 cannot be reached"):
        deaf_jobs.statuses()


def test_a_silent_dashboard_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        jobs = RayJobs(url, "token", address="127.0.0.1:1", timeout_s=0.5)

        with pytest.raises(ClusterError, match="did not answer GET /api/jobs/ in time"):
            jobs.statuses()
        jobs.close()


def test_a_driver_began_when_ray_took_it_unless_it_never_began() -> None:
    raw = {"status": "FAILED", "start_time": 5_000, "end_time": 7_000}

    never = _status(raw)
    began = _status({**raw, "driver_agent_http_address": "http://10.0.0.1:1"})

    assert (never.started_at_s, never.ended_at_s) == (None, 7.0)
    assert (began.started_at_s, began.ended_at_s) == (5.0, 7.0)


@pytest.mark.parametrize(
    ("raw", "state", "message"),
    [
        ({"status": "PENDING", "message": "Job has not started yet."}, JobState.SUBMITTED, ""),
        ({"status": "A_NEW_ONE"}, JobState.RUNNING, ""),
        ({"status": "FAILED", "message": None}, JobState.FAILED, ""),
        (
            {"status": "FAILED", "message": "runtime_env\n\tfailed: \n no such file"},
            JobState.FAILED,
            "runtime_env failed: no such file",
        ),
        (
            {
                "status": "FAILED",
                "error_type": "JOB_SUPERVISOR_ACTOR_DIED",
                "message": "Job supervisor actor died: its node died",
            },
            JobState.FAILED,
            "Job supervisor actor died: its node died",
        ),
    ],
    ids=["pending", "unknown", "failed-silently", "failed-in-many-lines", "node-died"],
)
def test_status_reads_what_ray_says(raw: dict[str, Any], state: JobState, message: str) -> None:
    status = _status(raw)

    assert (status.state, status.message, status.started_at_s) == (state, message, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no reason given"),
        ("Not found", "Not found"),
        ("Traceback\n  File x\nValueError: Job a exists.\n.\n", "Job a exists."),
        ("HTTP: no", "HTTP: no"),
    ],
    ids=["empty", "plain", "traceback", "colon"],
)
def test_reason_of_finds_the_sentence(text: str, reason: str) -> None:
    assert reason_of(text) == reason
