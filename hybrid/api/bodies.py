"""What the API accepts. Like the answers: frozen, and unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hybrid.core.models import JobSpec, Model

Duration = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Owner = Annotated[str, Field(max_length=200)]

JOB_ID = r"^([a-z0-9][a-z0-9-]{0,62})?$"
PACKAGE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"


class SubmitBody(Model):
    """`POST /api/v1/jobs`.

    Attributes:
        job_id: Made by the client, so that a repeated request is the same job.
    """

    spec: JobSpec
    job_id: str = Field(default="", pattern=JOB_ID)


class DrainBody(Model):
    """`POST /api/v1/drain`.

    Attributes:
        target: Instance id, node id, host name or a unique prefix of one.
        deadline_s: How long running work may go on; `None`: as configured.
    """

    target: str = Field(min_length=1, max_length=200)
    deadline_s: Duration | None = None
    owner: Owner = ""


class SwitchBody(Model):
    """`POST /api/v1/pause` and `/resume`."""

    direction: Literal["out", "in", "all", "dry-run"]
    owner: Owner = ""


class GcBody(Model):
    """`POST /api/v1/gc`."""

    dry_run: bool = True


class DownBody(Model):
    """`POST /api/v1/down`.

    Attributes:
        drain_s: How long running work may go on; 0 ends it at once. Absent: at once as well,
            or as was asked before when the cluster is going down already.
    """

    drain_s: Duration | None = None
    owner: Owner = ""


class JoinBody(Model):
    """`POST /api/v1/join`, from a rented node."""

    instance_id: str = Field(min_length=1, max_length=200)
    join_token: str = Field(min_length=1, max_length=200)


class ReportBody(JoinBody):
    """`POST /api/v1/join/report`, from a rented node.

    Attributes:
        phase: What it does, one word.
        problem: Why it cannot work; `""` when all is well.
    """

    phase: str = Field(pattern=r"^[a-z]{1,20}$")
    problem: str = Field(default="", max_length=4000)


class JoinView(Model):
    """Answer to a node that proved itself."""

    ray_token: str


class HealthView(Model):
    """`GET /healthz`: how the controller is, and what it does now.

    Attributes:
        state: As in `ControllerInfo`.
    """

    state: str
    phase: str = ""
