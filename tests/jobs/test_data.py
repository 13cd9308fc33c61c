"""Jobs with data, as Ray and the policy get them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hybrid.core.models import DataEntry, Job, JobSpec, JobState
from hybrid.jobs.params import QueueParams
from hybrid.jobs.requests import WRAPPER, no_kit, request_of
from hybrid.jobs.views import view_of

SPEC = JobSpec(entrypoint="x", gpus=0.5, data=(DataEntry(url="/data/a", size_gb=10),))


def job(spec: JobSpec) -> Job:
    return Job(job_id="j", spec=spec, state=JobState.QUEUED, created_at_s=0, state_at_s=0)


def test_a_job_with_data_runs_in_the_wrapper_which_copies_it() -> None:
    request = request_of(job(SPEC), QueueParams(), no_kit)
    assert request.spec.entrypoint == WRAPPER
    assert request.spec.env["HYBRID_DATA"] == '[["/data/a", ""]]'


def test_the_policy_sees_how_long_the_data_ships_if_the_speed_is_known() -> None:
    assert view_of(job(SPEC), QueueParams()).data_s is None
    assert view_of(job(SPEC), QueueParams(data_mbit_per_s=1_000)).data_s == 80.0
    assert view_of(job(JobSpec(entrypoint="x", gpus=1)), QueueParams()).data_s == 0.0


def test_a_job_that_holds_a_group_cannot_have_data_yet() -> None:
    with pytest.raises(ValidationError, match="let its program read the data itself"):
        JobSpec(entrypoint="x", gpus=1, nodes=2, data=SPEC.data)
