"""Settings of the job queue: work that asks for GPUs itself and waits for a place."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hybrid.settings.fields import Duration, Speeds, Text
from hybrid.settings.section import Section


class Waits(Section):
    """How long a job of each class may wait, unless it says so itself."""

    interactive_s: Duration = Field(60.0, description="Somebody sits in front of it.")
    batch_s: Duration = Field(1_800.0, description="The class of jobs that name none.")
    long_s: Duration = Field(
        14_400.0,
        description="It runs for days: nothing is rented for it before its last moment.",
    )


class Jobs(Section):
    """The queue of jobs that ask for GPUs, and the policy that places them."""

    profile: Literal["thrifty", "balanced", "fast"] = Field(
        "balanced",
        description="What is spent first: `thrifty` the waiting time of new jobs, `balanced` the "
        "slack of running ones and money soon after, `fast` money at once.",
    )
    max_wait: Waits = Field(default_factory=Waits, description="Longest acceptable waits.")
    fair_share: bool = Field(
        default=False, description="Of equal priority, users who hold fewer GPUs go first."
    )
    gpu_speeds: Speeds = Field(
        default_factory=dict,
        description="How fast types of GPU are for your work, such as {H100: 2.1, A100-80GB: 1}, "
        "to compare prices for the same work. Types that are not named count as 1.",
    )
    data_speed_mbit: float | None = Field(
        None,
        gt=0,
        description="How fast the data of jobs goes out to a cloud, Mbit/s. Unknown if absent: "
        "then nothing is rented for a job with data before its last moment.",
    )
    checkpoints: Text | None = Field(
        None,
        description="Folder that every node reaches, as an fsspec URL such as s3://team/jobs or "
        "/shared/jobs: each job that declares checkpoints and names no place gets one inside. A "
        "folder of the state folder if absent and every node is on this machine.",
    )
