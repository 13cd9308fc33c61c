"""A thousand jobs from twenty clients at once, over HTTP, with the real ledger."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.server import make_app, serve
from hybrid.control.mailbox import Mailbox
from hybrid.core.models import JobState
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World

TOKEN = "t0ken-for-tests"
CLIENTS, EACH = 20, 50


@contextmanager
def served(world: World) -> Iterator[str]:
    """Serve a world's controller; requests run in a thread of their own, as its loop does."""
    mailbox, is_over = Mailbox(), threading.Event()
    world.desk.mailbox = mailbox

    def work() -> None:
        while not is_over.is_set():
            mailbox.wait(0.05)
            mailbox.serve()

    thread = threading.Thread(target=work)
    thread.start()
    server = serve(make_app(world.desk, TOKEN), "127.0.0.1", 0)
    try:
        yield server.url
    finally:
        server.stop()
        is_over.set()
        mailbox.ring()
        thread.join()


@pytest.mark.slow
def test_a_thousand_jobs_from_twenty_clients_are_taken_once_each_and_run_in_order(
    fast_path: Path,
) -> None:
    world = World(fast_path, params=quick_params(), step_s=STEP_S, host_count=16)
    world.run(2 * STEP_S)
    # Nothing starts before all are there, so that the order can be seen.
    world.ray.is_silent = True
    world.step()

    def submit(client_number: int) -> list[str]:
        with hybrid.Client(url, TOKEN) as client:
            ids = []
            for number in range(EACH):
                job_id = f"c{client_number:02}-{number:02}"
                options: Any = {"gpus": 1, "priority": (number * 7) % 100, "job_id": job_id}
                ids.append(client.submit("python a.py", **options).id)
                if number % 10 == 0:  # an answer was lost, and the client asks again
                    assert client.submit("python other.py", **options).id == job_id
            return ids

    with served(world) as url, ThreadPoolExecutor(CLIENTS) as pool:
        told = [job_id for ids in pool.map(submit, range(CLIENTS)) for job_id in ids]

    jobs = {job.job_id: job for job in world.ledger.jobs(limit=None)}
    assert len(told) == CLIENTS * EACH
    assert set(jobs) == set(told), "none lost, none twice"
    assert {job.spec.entrypoint for job in jobs.values()} == {"python a.py"}
    kinds = [event.kind for event in world.ledger.events(limit=10_000)]
    assert kinds.count("job_queued") == CLIENTS * EACH

    world.ray.is_silent = False
    order = sorted(jobs.values(), key=lambda j: (-j.spec.priority, j.created_at_s, j.job_id))
    started: list[str] = []
    for _ in range(40):
        world.step()
        for ray_id, state in world.jobs.states.items():
            if state is JobState.RUNNING and ray_id not in started:
                started.append(ray_id)
        if len(started) >= 64:
            break
    assert set(started) == {job.job_id for job in order[: len(started)]}
    assert len(started) == 64, "all GPUs at home are in use"
    assert set(world.jobs.starts.values()) == {1}
