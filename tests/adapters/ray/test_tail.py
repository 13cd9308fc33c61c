"""Following a log when the stream breaks; the server below plays Ray's dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from aiohttp import web

from hybrid.adapters.ray.jobs import RayJobs
from hybrid.core.errors import ClusterError


class NoWait:
    """A clock whose sleep returns at once."""

    def now_s(self) -> float:
        return 0.0

    def monotonic_s(self) -> float:
        return 0.0

    def sleep(self, duration_s: float) -> None:
        pass


@contextmanager
def dashboard(streams: list[list[str]], *, log: str) -> Iterator[str]:
    """Serve a job that ends with the last of its streams."""
    left = list(streams)

    async def status(_: web.Request) -> web.Response:
        return web.json_response({"status": "RUNNING" if left else "SUCCEEDED"})

    async def logs(_: web.Request) -> web.Response:
        return web.json_response({"logs": log})

    async def tail(request: web.Request) -> web.WebSocketResponse:
        stream = web.WebSocketResponse()
        await stream.prepare(request)
        for piece in left.pop(0):
            await stream.send_str(piece)
        return stream

    app = web.Application()
    app.add_routes(
        [
            web.get("/api/jobs/j", status),
            web.get("/api/jobs/j/logs", logs),
            web.get("/api/jobs/j/logs/tail", tail),
        ]
    )
    with serve(app) as url:
        yield url


@contextmanager
def serve(app: web.Application) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(app)
    loop.run_until_complete(runner.setup())
    site = web.TCPSite(runner, "127.0.0.1", 0)
    loop.run_until_complete(site.start())
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def jobs_at() -> Iterator[Callable[[str], RayJobs]]:
    made: list[RayJobs] = []

    def make(url: str) -> RayJobs:
        made.append(RayJobs(url, "token", address="127.0.0.1:1", clock=NoWait()))
        return made[-1]

    yield make
    for jobs in made:
        jobs.close()


def test_follow_goes_on_where_a_broken_stream_ended(
    jobs_at: Callable[[str], RayJobs],
) -> None:
    streams = [["one\n", "tw"], [], ["one\ntwo\n", "three\n"]]
    with dashboard(streams, log="one\ntwo\nthree\nfour\n") as url:
        pieces = list(jobs_at(url).follow_logs("j"))

    assert pieces == ["one\n", "tw", "o\n", "three\n", "four\n"]


def test_follow_gives_up_on_a_stream_that_stays_silent(
    jobs_at: Callable[[str], RayJobs],
) -> None:
    with (
        dashboard([[]] * 9, log="") as url,
        pytest.raises(ClusterError, match="closed the log of job j 5 times"),
    ):
        list(jobs_at(url).follow_logs("j"))


def test_a_reader_may_stop_early(jobs_at: Callable[[str], RayJobs]) -> None:
    with dashboard([["one\n", "two\n"]], log="one\ntwo\n") as url:
        lines = jobs_at(url).follow_logs("j")

        assert next(lines) == "one\n"
        del lines


def test_follow_says_when_the_dashboard_has_no_such_stream(
    jobs_at: Callable[[str], RayJobs],
) -> None:
    async def status(_: web.Request) -> web.Response:
        return web.json_response({"status": "RUNNING"})

    app = web.Application()
    app.add_routes([web.get("/api/jobs/j", status)])
    with serve(app) as url, pytest.raises(ClusterError, match="cannot stream the log of job j"):
        list(jobs_at(url).follow_logs("j"))
