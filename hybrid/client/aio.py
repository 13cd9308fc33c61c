"""`hybrid.AsyncClient`: the client for programs with an event loop of their own.

Each call runs in a thread of the loop's pool, so it holds nothing up; waiting for a job holds no
thread between its looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from hybrid.client.client import Client
from hybrid.client.job import Job, Look

if TYPE_CHECKING:
    from hybrid.core import models

P = ParamSpec("P")
T = TypeVar("T")


def _client_call(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Return a method of `Client` that runs in a thread."""

    @wraps(method)
    async def call(self: AsyncClient, /, *args: P.args, **named: P.kwargs) -> T:
        return await asyncio.to_thread(method, self.client, *args, **named)

    return call


def _job_call(
    method: Callable[Concatenate[Job, P], T],
) -> Callable[Concatenate[AsyncJob, P], Coroutine[Any, Any, T]]:
    """Return a method of `Job` that runs in a thread."""

    @wraps(method)
    async def call(self: AsyncJob, /, *args: P.args, **named: P.kwargs) -> T:
        return await asyncio.to_thread(method, self.job, *args, **named)

    return call


class AsyncJob:
    """A job by its id; see `Job`, whose methods these are.

    Attributes:
        job: The same job for code without an event loop.
    """

    def __init__(self, job: Job) -> None:
        self.job = job

    @property
    def id(self) -> str:
        """The job's id."""
        return self.job.id

    details = _job_call(Job.details)
    status = _job_call(Job.status)
    cancel = _job_call(Job.cancel)
    audit = _job_call(Job.audit)

    async def wait(self, timeout: float | None = None) -> models.JobState:  # noqa: ASYNC109 - as `Job.wait`
        """Wait until the job has ended, and return how; see `Job.wait`."""
        look = await asyncio.to_thread(Look, self.job)
        while (pause_s := look.pause_s(timeout)) is not None:
            await asyncio.sleep(pause_s)
            await asyncio.to_thread(look.again)
        return look.state

    async def logs(self) -> str:
        """Return the output so far."""
        return await asyncio.to_thread(self.job.logs)

    async def follow_logs(self) -> AsyncIterator[str]:
        """Yield output as it comes, until the job ends."""
        pieces: Iterator[str] = self.job.logs(follow=True)
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece


class AsyncClient:
    """A running cluster; see `Client`, whose methods and arguments these are.

    Attributes:
        client: The same for code without an event loop.
    """

    def __init__(
        self, address: str | None = None, token: str | None = None, cluster: str | None = None
    ) -> None:
        self.client = Client(address, token, cluster)

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close connections."""
        self.client.close()

    def job(self, job_id: str) -> AsyncJob:
        """Return a job by its id."""
        return AsyncJob(self.client.job(job_id))

    jobs = _client_call(Client.jobs)
    status = _client_call(Client.status)
    nodes = _client_call(Client.nodes)
    instances = _client_call(Client.instances)
    plan = _client_call(Client.plan)
    cost = _client_call(Client.cost)
    events = _client_call(Client.events)
    config = _client_call(Client.config)
    drain = _client_call(Client.drain)
    pause = _client_call(Client.pause)
    resume = _client_call(Client.resume)
    gc = _client_call(Client.gc)
    down = _client_call(Client.down)
    _submit = _client_call(Client.submit)

    async def submit(self, entrypoint: str, **options: Any) -> AsyncJob:
        """Queue a job; the options are those of `Client.submit`."""
        return AsyncJob(await self._submit(entrypoint, **options))
