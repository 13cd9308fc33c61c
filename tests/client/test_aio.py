"""`hybrid.AsyncClient` against a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import hybrid
from hybrid.client import UnknownError, WaitTimeoutError
from hybrid.core.models import JobState
from tests.api.fake_service import FakeService
from tests.running import Running


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    for name in ("HYBRID_ADDRESS", "HYBRID_TOKEN", "HYBRID_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    running = Running(tmp_path / "home" / "lab", FakeService())
    yield running
    running.stop()


def test_jobs_are_submitted_and_waited_for_side_by_side(lab: Running) -> None:
    async def work() -> list[JobState]:
        async with hybrid.AsyncClient() as client:
            jobs = await asyncio.gather(
                *(client.submit(f"python {n}.py", gpus=1, priority=n) for n in range(5))
            )
            waits = [asyncio.create_task(job.wait(timeout=30)) for job in jobs]
            await asyncio.sleep(0.1)
            for job in jobs:
                lab.service.finish(job.id, JobState.SUCCEEDED, "")
            return list(await asyncio.gather(*waits))

    assert asyncio.run(work()) == [JobState.SUCCEEDED] * 5


def test_a_wait_ends_in_time_and_errors_are_the_same(lab: Running) -> None:
    async def work() -> None:
        async with hybrid.AsyncClient() as client:
            job = await client.submit("python a.py")
            with pytest.raises(WaitTimeoutError):
                await job.wait(timeout=0.3)
            with pytest.raises(UnknownError):
                await client.job("nobody").details()
            assert (await client.jobs()).jobs[0].job_id == job.id

    asyncio.run(work())


def test_output_is_followed(lab: Running) -> None:
    async def work() -> str:
        async with hybrid.AsyncClient() as client:
            job = await client.submit("python a.py")
            lab.service.finish(job.id, JobState.SUCCEEDED, "")
            return "".join([piece async for piece in job.follow_logs()])

    assert asyncio.run(work()) == "".join(lab.service.log_pieces)


def test_a_controller_that_restarts_is_waited_for(lab: Running) -> None:
    async def work() -> JobState:
        async with hybrid.AsyncClient() as client:
            job = await client.submit("python a.py")
            wait = asyncio.create_task(job.wait(timeout=30))
            await asyncio.sleep(0.1)
            await asyncio.to_thread(lab.stop)
            await asyncio.sleep(0.6)
            await asyncio.to_thread(lab.start)
            lab.service.finish(job.id, JobState.SUCCEEDED, "")
            return await wait

    assert asyncio.run(work()) is JobState.SUCCEEDED
