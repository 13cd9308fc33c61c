"""Values for ledger tests; each takes only what a test is about."""

from __future__ import annotations

from hybrid.core.lifecycle import Deadlines, Fact, advance
from hybrid.core.models import (
    Event,
    Instance,
    InstanceState,
    Job,
    JobSpec,
    JobState,
    LaunchSpec,
    Offer,
    Reason,
)

NOW_S = 1_764_500_000.0
"""2025-11-30, 10:53 UTC."""

EXIT_S = 1800.0


def make_offer(*, usd_per_hour: float = 2.0, gpu_count: int = 4) -> Offer:
    return Offer(
        offer_id="local///g4/on_demand",
        provider="local",
        instance_type="g4",
        shape={"CPU": 4, "GPU": gpu_count},
        labels={"site": "cloud"},
        gpu_count=gpu_count,
        usd_per_hour=usd_per_hour,
    )


def make_instance(
    instance_id: str = "i-1", *, offer: Offer | None = None, created_at_s: float = NOW_S
) -> Instance:
    """Return an intent."""
    return Instance(
        instance_id=instance_id,
        offer=offer or make_offer(),
        spec=LaunchSpec(
            cluster_id="c-1",
            instance_id=instance_id,
            epoch=1,
            head_address="127.0.0.1:6379",
            controller_url="http://127.0.0.1:8000",
            labels={"site": "cloud"},
            expires_at_s=created_at_s + 1800.0,
            ray_version="2.60.0",
            python_version="3.11.7",
            tags={"cluster": "c-1"},
        ),
        token=f"token-{instance_id}",
        state=InstanceState.REQUESTED,
        state_at_s=created_at_s,
        created_at_s=created_at_s,
        reason=Reason(code="queue_wait", message="work waits", facts={"wait_s": 31.5}),
    )


def after(instance: Instance, *facts: Fact, now_s: float) -> Instance:
    """Return the instance after some facts."""
    for fact in facts:
        instance = advance(instance, fact, now_s=now_s, deadlines=Deadlines())
    return instance


def terminated(instance: Instance, *, now_s: float) -> Instance:
    return after(instance, Fact.LAUNCH_ACCEPTED, Fact.GONE, now_s=now_s)


def make_event(kind: str = "tick_done", *, subject: str = "", at_s: float = NOW_S) -> Event:
    return Event(at_s=at_s, epoch=0, kind=kind, subject=subject, facts={"n": 1})


def make_job(
    job_id: str = "j-1", *, state: JobState = JobState.QUEUED, created_at_s: float = NOW_S
) -> Job:
    return Job(
        job_id=job_id,
        spec=JobSpec(entrypoint="python train.py", env={"A": "1"}),
        state=state,
        created_at_s=created_at_s,
        state_at_s=created_at_s,
    )
