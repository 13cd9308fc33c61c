"""The endpoints that ask for something. The controller's loop carries it out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from hybrid.api.bodies import (
    PACKAGE_NAME,
    DownBody,
    DrainBody,
    GcBody,
    JoinBody,
    JoinView,
    ReportBody,
    SubmitBody,
    SwitchBody,
)
from hybrid.api.reading import answer
from hybrid.api.refusals import RefusedJobError
from hybrid.control.service import Service
from hybrid.core.errors import ConfigError, JobError
from hybrid.core.models import Job
from hybrid.core.views import Accepted, GcView

_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
"""First bytes of a zip file with and without members."""


def job_routes(service: Service) -> APIRouter:
    """Return the endpoints that change jobs."""
    routes = APIRouter(tags=["jobs"])

    @routes.post("/jobs", response_model=Job)
    def submit(body: SubmitBody) -> Response:
        """Store a job; the same `job_id` again returns the same job."""
        try:
            return answer(service.submit(body.spec, job_id=body.job_id).masked())
        except JobError as error:
            raise RefusedJobError(str(error)) from error

    @routes.post("/jobs/{job_id}/cancel", response_model=Job)
    def cancel(job_id: str) -> Response:
        """Ask for a job's end; an ended job is returned as it is."""
        return answer(service.cancel(job_id).masked())

    return routes


def package_routes(service: Service) -> APIRouter:
    """Return the endpoint that takes working directories."""
    routes = APIRouter(tags=["jobs"])

    def store(name: str, content: bytes) -> Response:
        if not content.startswith(_ZIP_STARTS):
            raise ConfigError(f"package {name} is not a zip file; send the bytes of one")
        return answer(service.upload(name, content))

    @routes.put("/packages/{name}", response_model=Accepted)
    async def upload(
        name: Annotated[str, Path(pattern=PACKAGE_NAME)], request: Request
    ) -> Response:
        """Store the bytes of a zipped working directory under a name."""
        from fastapi.concurrency import run_in_threadpool

        content = await request.body()
        return await run_in_threadpool(store, name, content)

    return routes


def operator_routes(service: Service) -> APIRouter:
    """Return the operator's switches."""
    routes = APIRouter(tags=["operate"])

    @routes.post("/drain", response_model=Accepted)
    def drain(body: DrainBody) -> Response:
        """Drain one node; a rented one ends afterwards."""
        asked = service.drain(body.target, deadline_s=body.deadline_s, owner=body.owner)
        return answer(asked)

    @routes.post("/pause", response_model=Accepted)
    def pause(body: SwitchBody) -> Response:
        """Pause launches (`out`), scale-in (`in`), both (`all`) or every change (`dry-run`)."""
        return answer(service.pause(body.direction, owner=body.owner))

    @routes.post("/resume", response_model=Accepted)
    def resume(body: SwitchBody) -> Response:
        """Undo `pause`; `all` undoes a dry run, too."""
        return answer(service.resume(body.direction, owner=body.owner))

    @routes.post("/gc", response_model=GcView)
    def gc(body: GcBody) -> Response:
        """Look for orphans now; end them unless `dry_run`."""
        return answer(service.gc(is_dry_run=body.dry_run))

    @routes.post("/down", response_model=Accepted)
    def down(body: DownBody) -> Response:
        """Return everything rented, stop the nodes and the head, exit."""
        return answer(service.close(drain_s=body.drain_s, owner=body.owner))

    return routes


def join_routes(service: Service) -> APIRouter:
    """Return the endpoints of rented nodes; their proof is the join token in the body."""
    routes = APIRouter(tags=["nodes"])

    @routes.post("/join", response_model=JoinView)
    def join(body: JoinBody) -> Response:
        """Trade a one-time join token for Ray's token."""
        return answer(JoinView(ray_token=service.join(body.instance_id, body.join_token)))

    @routes.post("/join/report", response_model=Accepted)
    def report(body: ReportBody) -> Response:
        """Hear what a node does, or why it cannot; also after its token was traded."""
        service.report(body.instance_id, body.join_token, phase=body.phase, problem=body.problem)
        return answer(Accepted())

    return routes
