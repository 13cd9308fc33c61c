"""Secrets are canaries: they are looked for in everything that the controller says or stores.

Item 33 of the reliability contract: in answers of the real API, its refusals, the log, events,
rows, the ledger's own file, and what a cloud or Ray is given. `tests/providers/test_canary.py`
does the same for the user data and tags of the three clouds.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import structlog

from hybrid.api.server import make_app, serve
from hybrid.core.errors import InvalidRequestError, ThrottledError
from hybrid.core.models import InstanceState, JobSpec
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World, two_clouds

API_TOKEN = "canary-api-7d1e"
ENV_VALUE = "canary-env-5f2c"
RAY_TOKEN = "ray-token"  # the world's nodes get this one
GPU = {"GPU": 1.0}
S = InstanceState
GETS = ("status", "nodes", "plan", "instances", "events", "cost", "jobs", "config")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All lines of the log, whatever their level."""
    text = io.StringIO()
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        logger_factory=structlog.PrintLoggerFactory(text),
        cache_logger_on_first_use=False,
    )
    yield text
    structlog.reset_defaults()


def lived(folder: Path) -> World:
    """Return a world in which much was done, well and badly."""
    world = World(folder, params=quick_params(), offers=list(two_clouds()), step_s=STEP_S)
    for cloud in world.clouds.values():
        cloud.boot_s = 10.0
    world.cloud.launch_faults = [
        "lost",
        ThrottledError("slow down", provider="sim"),
        InvalidRequestError("no such image", provider="sim"),
    ]
    world.ray.submit(16, GPU, 150.0)
    world.desk.submit(JobSpec(entrypoint="true", env={"KEY": ENV_VALUE}), job_id="good")
    world.desk.submit(JobSpec(entrypoint="refuse", env={"KEY": ENV_VALUE}), job_id="refused")
    world.run(150, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    world.desk.drain(
        next(r for r in world.rows() if r.state is S.RUNNING).instance_id,
        deadline_s=60.0,
        owner="ann",
    )
    world.run(30)
    world.desk.publish()
    return world


def secrets(world: World) -> set[str]:
    tokens = {machine.join_token for machine in world.machines()}
    assert tokens
    return tokens | {RAY_TOKEN, API_TOKEN, ENV_VALUE}


def found_in(text: str, world: World, *, but: str = "") -> list[str]:
    return [secret for secret in secrets(world) if secret != but and secret in text]


def test_no_secret_is_in_an_answer_of_the_api_or_in_a_refusal(
    fast_path: Path, log: io.StringIO
) -> None:
    world = lived(fast_path)
    server = serve(make_app(world.desk, API_TOKEN), "127.0.0.1", 0)
    headers = {"Authorization": f"Bearer {API_TOKEN}"}
    token = world.machines()[0].join_token
    body = {"spec": {"entrypoint": "x", "env": {"K": ENV_VALUE}}}
    refused = [
        # What is wrong is told; what was sent is not repeated.
        ("jobs", {"spec": {"env": {"K": ENV_VALUE}}}),
        ("jobs", {"spec": {"entrypoint": ENV_VALUE, "env": [ENV_VALUE]}}),
        ("jobs", {"spec": {"entrypoint": "x", "env": {"K": {"L": ENV_VALUE}}}}),
        ("join", {"instance_id": "i-none", "join_token": token}),
        ("join", {"instance_id": 3, "join_token": token, "more": token}),
        ("join", {"join_token": [token]}),
    ]
    try:
        with httpx.Client(base_url=f"{server.url}/api/v1/", trust_env=False) as http:
            answers = [http.get(path, headers=headers) for path in (*GETS, "jobs/good")]
            answers += [http.post("jobs", json=body, headers=headers)]
            answers += [http.post("gc", json={"dry_run": True}, headers=headers)]
            assert {answer.status_code for answer in answers} == {200}
            wrong = [http.post(path, json=sent, headers=headers) for path, sent in refused]
            wrong += [http.get("status", headers={"Authorization": f"Bearer {token}"})]
            wrong += [http.get(f"jobs/{token[:8]}", headers=headers)]
            assert all(400 <= answer.status_code < 500 for answer in wrong)
            openapi = httpx.get(f"{server.url}/openapi.json", headers=headers, trust_env=False)
    finally:
        server.stop()

    for answer in (*answers, *wrong, openapi):
        told = answer.text + json.dumps(dict(answer.headers))
        assert found_in(told, world) == [], f"{answer.request.url}: {told[:300]}"
    assert found_in(log.getvalue(), world) == []


def test_no_secret_is_in_the_log_an_event_or_a_row(fast_path: Path, log: io.StringIO) -> None:
    world = lived(fast_path)

    world.run(600, until=world.is_quiet)

    assert "instance_running" in log.getvalue(), "or the test proves nothing"
    assert found_in(log.getvalue(), world) == []
    events = "".join(e.model_dump_json() for e in world.ledger.events(limit=10_000))
    rows = "".join(r.model_dump_json() for r in world.rows())
    failures = "".join(f.model_dump_json() for f in world.ledger.failures())
    assert found_in(events + rows + failures, world) == []


def test_the_ledgers_file_holds_no_token_and_of_a_job_what_it_needs(fast_path: Path) -> None:
    """A job's environment has to outlive a restart: it is in its row, in a file of the owner's."""
    world = lived(fast_path)
    world.ledger.close()

    files = [path for path in fast_path.rglob("*") if path.is_file()]
    content = "".join(path.read_bytes().decode("latin-1") for path in files)

    assert "instance_running" in content, "or the test proves nothing"
    assert found_in(content, world, but=ENV_VALUE) == []


def test_a_cloud_is_given_the_join_token_of_one_node_and_nothing_else(fast_path: Path) -> None:
    """Its labels and tags hold none; nothing but the node's own one-time token is handed over."""
    world = lived(fast_path)

    for machine in world.machines():
        given = machine.spec.model_dump_json() + machine.token + machine.offer.model_dump_json()
        assert found_in(given, world) == []
    tokens = [machine.join_token for machine in world.machines()]
    assert len(set(tokens)) == len(tokens)


def test_a_job_gets_its_own_environment_and_none_of_ours(fast_path: Path) -> None:
    world = lived(fast_path)

    given = world.jobs.submitted["good"].model_dump_json()

    assert found_in(given, world) == [ENV_VALUE]
