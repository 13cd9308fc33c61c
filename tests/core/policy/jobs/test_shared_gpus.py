"""Parts of GPUs."""

from __future__ import annotations

from hybrid.core.models import Demand
from hybrid.core.models.work import JobView
from tests.core.policy.jobs.make import cluster, job, plan


def half(name: str) -> JobView:
    return job(name, units=(Demand(shape={"GPU": 0.5}, count=1),))


def test_two_jobs_of_half_a_gpu_share_one_and_a_third_waits() -> None:
    jobs = [half("a"), half("b"), half("c")]
    made = plan(cluster(*jobs, home=1, node_gpus=1))
    assert made == ["start a h0", "start b h0"]
