"""Settings as the loop and the policy know them."""

from __future__ import annotations

from pathlib import Path

from hybrid.control.params import ControlParams
from hybrid.core.lifecycle import Deadlines
from hybrid.core.models import JobClass, RayHealth, RayOptions
from hybrid.core.policy.jobs.params import PROFILES, JobParams
from hybrid.core.policy.params import PolicyParams
from hybrid.jobs.params import NO_WAIT_LIMIT_S, QueueParams
from hybrid.settings import Settings


def policy_params(settings: Settings) -> PolicyParams:
    """Return the policy's thresholds."""
    burst, idle, drain = settings.burst, settings.idle, settings.drain
    return PolicyParams(
        max_wait_s=burst.queue.max_wait_s,
        pending_gpus=burst.queue.pending_gpus,
        stabilisation_s=burst.stabilisation_s,
        launches_per_tick=burst.launches_per_tick,
        first_wave_count=burst.first_wave,
        placement_grace_s=burst.placement_grace_s,
        idle_after_s=idle.after_s,
        min_life_s=idle.min_life_s,
        boot_life_ratio=idle.boot_life_ratio,
        unhealthy_ratio=idle.unhealthy_ratio,
        drain_s=drain.deadline_s,
        busy_drain=drain.busy,
        exit_margin_s=drain.exit_margin_s,
        jobs=_job_params(settings),
    )


def _job_params(settings: Settings) -> JobParams:
    """Return the thresholds for jobs of our own queue."""
    profile = PROFILES[settings.jobs.profile]
    changes = {
        "fair_share": settings.jobs.fair_share,
        "gpu_speeds": settings.jobs.gpu_speeds,
        # What a job leaves behind is of use to few others, so it waits no longer than its own.
        "idle_after_s": min(profile.idle_after_s, settings.idle.after_s),
    }
    return profile.model_copy(update=changes)


def ray_options(settings: Settings, *, is_shared: bool) -> RayOptions:
    """Return how Ray runs on a node.

    Args:
        settings: The configuration.
        is_shared: Other nodes run on the same machine and want a part of its memory.
    """
    ray = settings.ray
    ports = ray.worker_ports
    return RayOptions(
        object_store_bytes=ray.store_bytes(is_shared=is_shared),
        health=RayHealth(**dict(ray.health)),
        worker_ports=None if ports is None else (ports.low, ports.high),
        max_shapes=ray.max_shapes,
    )


def queue_params(settings: Settings, state_dir: Path) -> QueueParams:
    """Return the promises of the job queue."""
    jobs, waits = settings.jobs, settings.jobs.max_wait
    here = str(state_dir / "checkpoints") if settings.is_one_machine else ""
    return QueueParams(
        max_wait_by_class_s={
            JobClass.INTERACTIVE: waits.interactive_s,
            JobClass.BATCH: waits.batch_s,
            JobClass.LONG: waits.long_s,
            JobClass.BEST_EFFORT: NO_WAIT_LIMIT_S,
        },
        checkpoint_url=jobs.checkpoints or here,
        data_mbit_per_s=jobs.data_speed_mbit,
    )


def control_params(settings: Settings, state_dir: Path) -> ControlParams:
    """Return the loop's times and limits."""
    deadlines, reaper, backoff = settings.deadlines, settings.reaper, settings.backoff
    return ControlParams(
        tick_s=settings.controller.tick_s,
        lease_s=settings.lease.length_s,
        renew_s=settings.lease.renew_s,
        orphan_grace_s=reaper.orphan_grace_s,
        miss_count=reaper.missing_after,
        mass_hold_s=settings.idle.unhealthy_hold_s,
        backoff_base_s=backoff.first_s,
        backoff_cap_s=backoff.longest_s,
        deadlines=Deadlines(
            launch_s=deadlines.launch_s,
            join_s=deadlines.join_s,
            idle_drain_s=deadlines.idle_drain_s,
            terminate_s=deadlines.terminate_s,
            drain_s=settings.drain.deadline_s,
        ),
        caps=settings.caps,
        policy=policy_params(settings),
        queue=queue_params(settings, state_dir),
    )
