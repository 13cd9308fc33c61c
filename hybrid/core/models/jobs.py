"""Jobs, as users ask for them and as the ledger keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hybrid.core.models.base import Labels, Model
from hybrid.core.models.data import DataEntry
from hybrid.core.models.work import Checkpoint, Slot


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


class JobClass(StrEnum):
    """How long a job may wait, if it does not say so itself.

    `BEST_EFFORT` fills GPUs at home that nobody else wants, and leaves at once when somebody
    does; nothing is ever rented for it.
    """

    INTERACTIVE = "interactive"
    BATCH = "batch"
    LONG = "long"
    BEST_EFFORT = "best-effort"


class SavedWork(Checkpoint):
    """A job's promise that it can be stopped and go on elsewhere (docs/checkpoints.md).

    Attributes:
        url: Folder for the job's checkpoints, as an fsspec URL; `""` for one under the
            cluster's own.
        signal: Sent to the driver when it is asked to save; `""`: it asks by itself.
    """

    url: str = Field(default="", max_length=2_000)
    signal: Literal["", "USR1", "TERM"] = ""


Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class JobSpec(Model):
    """What a user asks to run.

    A job that asks for GPUs waits in our queue and starts where the policy says; one without
    is handed to Ray at once, and what its tasks ask for is seen as demand.

    Attributes:
        entrypoint: Shell command of the driver, as in Ray Jobs.
        gpus, cpus, memory_bytes: What the driver process itself needs; tasks ask for theirs.
            With `nodes`: what the job's placement group holds on each node.
        nodes: A gang: so many nodes at once, or none; 0 for a job whose driver uses the GPUs.
        site: Where it may run.
        package: Name of an uploaded working directory, or `""`.
        env: Environment of the driver and its workers; answers have `***` for each value.
        priority: 0 to 100, higher first.
        job_class: How long it may wait when `max_wait_s` does not say so.
        max_wait_s: Longest acceptable wait, seconds; `None`: that of its class.
        deadline_at_s: When it should be done, seconds since the epoch; `None`: no such time.
        lasts_s: How long it runs, as far as its user knows: only used with `deadline_at_s`.
        retries: How often it starts anew after it failed.
        checkpoint: `None` for work that loses what it did when it is stopped: never moved.
        data: Copied onto the node of the driver before it starts.
    """

    entrypoint: str = Field(min_length=1)
    name: str = ""
    gpus: float = Field(default=0, ge=0, allow_inf_nan=False)
    cpus: float = Field(default=0, ge=0, allow_inf_nan=False)
    memory_bytes: int = Field(default=0, ge=0)
    site: Literal["any", "onprem", "cloud"] = "any"
    package: str = ""
    env: Mapping[str, str] = Field(default_factory=dict)
    priority: int = Field(default=50, ge=0, le=100)
    user: str = ""
    tags: Labels = Field(default_factory=dict)
    nodes: int = Field(default=0, ge=0, le=10_000)
    job_class: JobClass = JobClass.BATCH
    max_wait_s: Seconds | None = None
    deadline_at_s: Seconds | None = None
    lasts_s: Seconds = 0.0
    retries: int = Field(default=0, ge=0, le=1_000)
    checkpoint: SavedWork | None = None
    data: tuple[DataEntry, ...] = Field(default=(), max_length=100)

    @model_validator(mode="after")
    def _check_gang(self) -> Self:
        if self.nodes and not self.gpus:
            raise ValueError(
                f"a gang of {self.nodes} nodes needs gpus: what it holds on each node, such as "
                "gpus=8; for work without GPUs leave nodes at 0"
            )
        if self.data and self.holds_group:
            raise ValueError(
                "data is copied for jobs of one driver only: not with nodes, and not with "
                'site="onprem" and gpus; let its program read the data itself'
            )
        return self

    @property
    def holds_group(self) -> bool:
        """Whether a placement group holds its GPUs, and its tasks run inside that."""
        return self.nodes > 0 or (self.site == "onprem" and self.is_queued)

    @property
    def cpus_each(self) -> float:
        """CPUs on each of its nodes: in a group its tasks need some, and by default one each."""
        return self.cpus or (max(1.0, self.gpus) if self.holds_group else 0.0)

    @property
    def is_queued(self) -> bool:
        """Whether it waits in our queue; otherwise Ray gets it at once."""
        return self.gpus > 0


class Stop(Model):
    """A running job that has to leave its place: asked to save, then stopped.

    Attributes:
        why: `suspend` and `move` are withdrawn when the job does not save in time; `preempt`
            (more urgent work), and `leave` (its node ends) stop it all the same.
        slots: Where it goes on; empty when it waits in the queue.
        by_s: When it should have saved.
        saved_before_s: When it had saved before it was asked, by its own clock.
        is_saved: It has, or has nothing to save.
        message: Of the decision.
    """

    why: Literal["suspend", "move", "preempt", "leave"]
    slots: tuple[Slot, ...] = ()
    asked_at_s: float
    by_s: float
    saved_before_s: float | None = None
    is_saved: bool = False
    message: str = ""

    @property
    def is_forced(self) -> bool:
        """Whether it happens also when the job does not answer."""
        return self.why in ("preempt", "leave")


class Job(Model):
    """A job's row in the ledger; the truth also after Ray forgot it.

    A job that was suspended or lost its node is `QUEUED` again: `attempt` says that it ran.

    Attributes:
        started_at_s: When its driver first began.
        attempt: The number of its present or last start; 0 before the first.
        slots: The nodes that it holds, or that are kept for it.
        stop: Why and how it is leaving its place; `None` while it may stay.
        progress_s: Useful time before the present start, as far as it was saved.
        useful_from_s: When its present start began or begins to be useful.
        resume_from: URL of its last confirmed checkpoint.
        failures: How often it failed by itself.
        suspensions: How often it was put back into the queue for others.
        interruptions: How often it was stopped, for whatever reason.
        is_deaf: It did not save when it was asked to in this attempt, so it is not asked again.
    """

    job_id: str
    spec: JobSpec
    state: JobState
    created_at_s: float
    state_at_s: float
    started_at_s: float | None = None
    ended_at_s: float | None = None
    is_cancel_asked: bool = False
    message: str = ""
    attempt: int = Field(default=0, ge=0)
    slots: tuple[Slot, ...] = ()
    stop: Stop | None = None
    progress_s: float = Field(default=0.0, ge=0)
    useful_from_s: float | None = None
    resume_from: str = ""
    failures: int = Field(default=0, ge=0)
    suspensions: int = Field(default=0, ge=0)
    interruptions: int = Field(default=0, ge=0)
    is_deaf: bool = False

    @property
    def ray_id(self) -> str:
        """Ray's id of its present attempt. A dot is in no id of ours, so none is another's."""
        return self.job_id if self.attempt <= 1 else f"{self.job_id}.{self.attempt}"

    def masked(self) -> Job:
        """Return the job as others may see it: without the values of its environment."""
        if not self.spec.env:
            return self
        spec = self.spec.model_copy(update={"env": dict.fromkeys(self.spec.env, "***")})
        return self.model_copy(update={"spec": spec})
