"""The endpoints that read. Each answers with a model of `hybrid.core.views`, or a `Job`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from hybrid.api.logstream import LogStreams
from hybrid.control.service import Service
from hybrid.core.models import Job
from hybrid.core.views import (
    AuditView,
    CostView,
    EventsView,
    InstancesView,
    JobsView,
    NodesView,
    PlanView,
    StatusView,
)

Limit = Annotated[int, Query(ge=1, le=10_000)]
Subject = Annotated[str, Query(max_length=200)]


def answer(model: BaseModel) -> Response:
    """Return a model as JSON, without validating it a second time."""
    return Response(model.model_dump_json(), media_type="application/json")


def reading_routes(service: Service) -> APIRouter:
    """Return the endpoints that change nothing."""
    routes = APIRouter(tags=["read"])

    @routes.get("/status", response_model=StatusView)
    def status() -> Response:
        """The whole cluster on one page."""
        return answer(service.status())

    @routes.get("/nodes", response_model=NodesView)
    def nodes() -> Response:
        """Nodes, on-prem hosts and rented instances that are not nodes yet."""
        return answer(service.nodes())

    @routes.get("/plan", response_model=PlanView)
    def plan() -> Response:
        """The last decision, with reasons."""
        return answer(service.plan())

    @routes.get("/instances", response_model=InstancesView)
    def instances(limit: Limit = 1000) -> Response:
        """Rented instances, ended ones included, newest first."""
        return answer(service.instances(limit=limit))

    @routes.get("/events", response_model=EventsView)
    def events(
        after: Annotated[int, Query(ge=0)] = 0, limit: Limit = 200, subject: Subject = ""
    ) -> Response:
        """History, oldest first; `after=0` gives the last `limit` events."""
        return answer(service.events(after_seq=after, limit=limit, subject=subject))

    @routes.get("/cost", response_model=CostView)
    def cost(since: Annotated[float, Query(ge=0, allow_inf_nan=False)] = 0.0) -> Response:
        """Estimated spend since an instant, in seconds since the epoch."""
        return answer(service.cost(since_s=since))

    @routes.get("/jobs", response_model=JobsView)
    def jobs(*, limit: Limit = 200, live: bool = False) -> Response:
        """Jobs, newest first; with `live` those that have not ended, oldest first."""
        view = service.jobs(limit=limit, is_live_only=live)
        return answer(view.model_copy(update={"jobs": tuple(job.masked() for job in view.jobs)}))

    @routes.get("/jobs/{job_id}", response_model=Job)
    def job(job_id: str) -> Response:
        """One job."""
        return answer(service.job(job_id).masked())

    @routes.get("/jobs/{job_id}/audit", response_model=AuditView)
    def audit(job_id: str) -> Response:
        """Where a job and what it started ran."""
        return answer(service.audit(job_id))

    @routes.get("/config")
    def config() -> JSONResponse:
        """The configuration in force, secrets left out."""
        return JSONResponse(service.config())

    return routes


def log_routes(service: Service) -> APIRouter:
    """Return the endpoint that streams a job's output."""
    routes = APIRouter(tags=["read"])
    streams = LogStreams()

    @routes.get("/jobs/{job_id}/logs", response_class=Response)
    async def logs(job_id: str, *, follow: bool = False) -> Response:
        """A job's output as plain text; with `follow`, until the job ends."""
        return await streams.open(job_id, lambda: service.job_logs(job_id, is_following=follow))

    return routes
