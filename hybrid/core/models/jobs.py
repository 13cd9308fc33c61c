"""Jobs, as users ask for them and as the ledger keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field

from hybrid.core.models.base import Labels, Model


class JobState(StrEnum):
    """Where a job is. `SUBMITTED` means Ray has it; `QUEUED` means only we do."""

    QUEUED = "queued"
    SUBMITTED = "submitted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will happen to the job."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class JobSpec(Model):
    """What a user asks to run.

    Attributes:
        entrypoint: Shell command of the driver, as in Ray Jobs.
        gpus, cpus, memory_bytes: What the driver process itself needs; tasks ask for theirs.
        site: Where the driver may run.
        package: Name of an uploaded working directory, or `""`.
        env: Environment of the driver and its workers; answers have `***` for each value.
        priority: 0 to 100, higher first. Kept for the queue; not used for order yet.
    """

    entrypoint: str = Field(min_length=1)
    name: str = ""
    gpus: float = Field(default=0, ge=0)
    cpus: float = Field(default=0, ge=0)
    memory_bytes: int = Field(default=0, ge=0)
    site: Literal["any", "onprem", "cloud"] = "any"
    package: str = ""
    env: Mapping[str, str] = Field(default_factory=dict)
    priority: int = Field(default=50, ge=0, le=100)
    user: str = ""
    tags: Labels = Field(default_factory=dict)


class Job(Model):
    """A job's row in the ledger; the truth also after Ray forgot it."""

    job_id: str
    spec: JobSpec
    state: JobState
    created_at_s: float
    state_at_s: float
    started_at_s: float | None = None
    ended_at_s: float | None = None
    is_cancel_asked: bool = False
    message: str = ""

    def masked(self) -> Job:
        """Return the job as others may see it: without the values of its environment."""
        if not self.spec.env:
            return self
        spec = self.spec.model_copy(update={"env": dict.fromkeys(self.spec.env, "***")})
        return self.model_copy(update={"spec": spec})
