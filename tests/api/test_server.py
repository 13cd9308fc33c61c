"""The endpoints, through a real server."""

from __future__ import annotations

import socket

import httpx
import pytest
from pydantic import BaseModel

from hybrid.api.server import ApiServer, make_app, serve, url_of
from hybrid.core.errors import (
    CapExceededError,
    ClusterError,
    ConfigError,
    HybridError,
    LedgerError,
    NotFoundError,
)
from hybrid.core.models import Job
from hybrid.core.views import (
    CostView,
    EventsView,
    GcView,
    InstancesView,
    JobsView,
    NodesView,
    PlanView,
    StatusView,
)
from tests.api.fake_service import JOIN_TOKEN, RAY_TOKEN, FakeService, broken_config

READS: dict[str, type[BaseModel]] = {
    "status": StatusView,
    "nodes": NodesView,
    "plan": PlanView,
    "instances": InstancesView,
    "events": EventsView,
    "cost": CostView,
    "jobs": JobsView,
    "jobs/j-running": Job,
}


@pytest.mark.parametrize("path", READS)
def test_a_reading_endpoint_answers_with_exactly_its_model(http: httpx.Client, path: str) -> None:
    answer = http.get(f"/api/v1/{path}")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    model = READS[path]
    assert answer.json() == model.model_validate_json(answer.content).model_dump(mode="json")


def test_config_is_answered_as_the_controller_gives_it(http: httpx.Client) -> None:
    assert http.get("/api/v1/config").json()["name"] == "lab"


def test_healthz_needs_no_token_and_tells_only_state_and_phase(
    server: ApiServer, service: FakeService
) -> None:
    service.state, service.phase = "starting", "starting the head"

    answer = httpx.get(f"{server.url}/healthz", trust_env=False)

    assert answer.json() == {"state": "starting", "phase": "starting the head"}


def test_events_can_be_read_in_pages(http: httpx.Client) -> None:
    first = http.get("/api/v1/events", params={"after": 2, "limit": 3}).json()
    rest = http.get("/api/v1/events", params={"after": first["next_seq"]}).json()

    assert [event["seq"] for event in first["events"]] == [3, 4, 5]
    assert [event["seq"] for event in rest["events"]] == [6, 7]


def test_submitting_the_same_job_id_twice_gives_one_job(http: httpx.Client) -> None:
    body = {"spec": {"entrypoint": "python t.py"}, "job_id": "j-1"}

    first = http.post("/api/v1/jobs", json=body).json()
    second = http.post("/api/v1/jobs", json=body).json()

    assert first == second
    assert first["job_id"] == "j-1"


def test_no_answer_holds_the_values_of_a_jobs_environment(http: httpx.Client) -> None:
    spec = {"entrypoint": "python t.py", "env": {"API_KEY": "s3cret", "MODE": ""}}
    body = {"spec": spec, "job_id": "j-env"}

    answers = [
        http.post("/api/v1/jobs", json=body),
        http.post("/api/v1/jobs", json=body),
        http.get("/api/v1/jobs"),
        http.get("/api/v1/jobs", params={"live": True}),
        http.get("/api/v1/jobs/j-env"),
        http.post("/api/v1/jobs/j-env/cancel"),
    ]

    for answer in answers:
        assert answer.status_code == 200
        assert "s3cret" not in answer.text
        assert '"env":{"API_KEY":"***","MODE":"***"}' in answer.text


def test_cancel_returns_the_job(http: httpx.Client) -> None:
    assert http.post("/api/v1/jobs/j-running/cancel").json()["state"] == "cancelled"


def test_the_operators_commands_reach_the_controller(
    http: httpx.Client, service: FakeService
) -> None:
    http.post("/api/v1/drain", json={"target": "i-1", "deadline_s": 60, "owner": "ada"})
    http.post("/api/v1/pause", json={"direction": "out", "owner": "ada"})
    report = http.post("/api/v1/gc", json={"dry_run": True})
    http.post("/api/v1/down", json={"drain_s": 5})

    assert service.drains == [("i-1", 60.0, "ada")]
    assert service.mode.is_out_paused
    assert GcView.model_validate_json(report.content).is_dry_run
    assert service.drain_s == 5.0
    http.post("/api/v1/resume", json={"direction": "all"})
    assert not service.mode.is_out_paused


def test_join_needs_the_join_token_and_no_bearer(server: ApiServer) -> None:
    url = f"{server.url}/api/v1/join"
    wrong = {"instance_id": "i-1", "join_token": "guess"}

    right = httpx.post(url, json={**wrong, "join_token": JOIN_TOKEN}, trust_env=False)
    refused = httpx.post(url, json=wrong, trust_env=False)

    assert right.json() == {"ray_token": RAY_TOKEN}
    assert refused.status_code == 409


def test_a_node_reports_with_its_join_token_and_no_bearer(
    server: ApiServer, service: FakeService
) -> None:
    url = f"{server.url}/api/v1/join/report"
    body = {"instance_id": "i-1", "join_token": JOIN_TOKEN, "phase": "failed", "problem": "no GPU"}

    right = httpx.post(url, json=body, trust_env=False)
    refused = httpx.post(url, json={**body, "join_token": "guess"}, trust_env=False)

    assert (right.status_code, refused.status_code) == (200, 409)
    assert service.reports == [("i-1", "failed", "no GPU")]


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": "x" * 21},
        {"phase": "a b"},
        {"phase": ""},
        {"problem": "x" * 4001},
        {"instance_id": "i" * 201},
        {"problem": None},
        {"more": "of it"},
    ],
    ids=str,
)
def test_a_report_out_of_form_is_refused(
    server: ApiServer, service: FakeService, changes: dict[str, object]
) -> None:
    body = {"instance_id": "i-1", "join_token": JOIN_TOKEN, "phase": "failed", "problem": ""}

    answer = httpx.post(
        f"{server.url}/api/v1/join/report", json={**body, **changes}, trust_env=False
    )

    assert answer.status_code == 422
    assert service.reports == []


def test_a_package_is_stored_under_its_name(http: httpx.Client, service: FakeService) -> None:
    content = b"PK\x05\x06" + bytes(18)

    answer = http.put("/api/v1/packages/pkg-1.zip", content=content)

    assert answer.status_code == 200
    assert service.packages == {"pkg-1.zip": content}


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (broken_config(), 400),
        (NotFoundError("no such node", provider="local"), 404),
        (HybridError("busy"), 409),
        (CapExceededError("2 of 2 nodes are in use", cap="node_count"), 409),
        (LedgerError("the disk is full"), 503),
        (ClusterError("Ray does not answer"), 503),
        (ZeroDivisionError("a bug"), 500),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_of_the_controller_has_its_status_and_one_shape(
    http: httpx.Client, service: FakeService, problem: Exception, status: int
) -> None:
    service.problem = problem

    answer = http.get("/api/v1/status")

    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"kind", "message"}
    if status != 500:
        assert error == {"kind": type(problem).__name__, "message": str(problem)}


def test_an_unknown_job_is_404_and_a_refused_one_409(http: httpx.Client) -> None:
    refused = http.post("/api/v1/jobs", json={"spec": {"entrypoint": "refuse me"}})

    assert http.get("/api/v1/jobs/nope").status_code == 404
    assert http.get("/api/v1/jobs/nope/logs").status_code == 404
    assert http.post("/api/v1/jobs/nope/cancel").status_code == 404
    assert refused.status_code == 409
    assert refused.json()["error"]["kind"] == "JobError"


def test_what_is_not_there_is_answered_in_the_one_shape(http: httpx.Client) -> None:
    missing = http.get("/api/v1/nothing")
    wrong_verb = http.delete("/api/v1/status")

    assert missing.status_code == 404
    assert wrong_verb.status_code == 405
    assert missing.json()["error"]["kind"] == wrong_verb.json()["error"]["kind"] == "HTTPError"


def test_openapi_names_every_model_and_the_bearer_scheme(http: httpx.Client) -> None:
    schema = http.get("/openapi.json").json()

    assert {model.__name__ for model in READS.values()} <= set(schema["components"]["schemas"])
    assert schema["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert "security" not in schema["paths"]["/healthz"]["get"]


def test_a_taken_port_is_a_config_error_that_names_it(service: FakeService) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(ConfigError, match=rf"127\.0\.0\.1:{port}.*`auto`"):
            serve(make_app(service, "t"), "127.0.0.1", port)


def test_an_address_of_another_machine_is_a_config_error(service: FakeService) -> None:
    with pytest.raises(ConfigError, match="203\\.0\\.113\\.9"):
        serve(make_app(service, "t"), "203.0.113.9", 0)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("::", "http://[::1]:80"),
        ("fd00::7", "http://[fd00::7]:80"),
    ],
)
def test_an_address_becomes_a_url(host: str, url: str) -> None:
    assert url_of(host, 80) == url


@pytest.mark.parametrize("host", ["0.0.0.0", "::1", "localhost"])
def test_the_url_is_one_that_this_machine_can_use(service: FakeService, host: str) -> None:
    server = serve(make_app(service, "t"), host, 0)

    assert httpx.get(f"{server.url}/healthz", trust_env=False).status_code == 200
    assert "0.0.0.0" not in server.url
    server.stop()


def test_nodes_are_served_at_their_own_address_and_nothing_but_their_join(
    service: FakeService,
) -> None:
    server = serve(
        make_app(service, "t", nodes_host="127.0.0.2"), "127.0.0.1", 0, nodes_host="127.0.0.2"
    )
    for_nodes = server.url.replace("127.0.0.1", "127.0.0.2")
    headers = {"Authorization": "Bearer t"}
    body = {"instance_id": "i-1", "join_token": JOIN_TOKEN}
    try:
        assert httpx.get(f"{server.url}/api/v1/status", headers=headers).status_code == 200
        for path in ("/api/v1/status", "/healthz", "/openapi.json", "/api/v1/join/", "/"):
            answer = httpx.get(f"{for_nodes}{path}", headers=headers)
            assert answer.status_code == 404, path
        joined = httpx.post(f"{for_nodes}/api/v1/join", json=body)
        assert joined.json() == {"ray_token": RAY_TOKEN}
        told = {**body, "phase": "starting"}
        assert httpx.post(f"{for_nodes}/api/v1/join/report", json=told).status_code == 200
    finally:
        server.stop()


def test_stop_frees_the_port_and_may_be_called_twice(service: FakeService) -> None:
    first = serve(make_app(service, "t"), "127.0.0.1", 0)
    port = int(first.url.rsplit(":", 1)[1])

    first.stop()
    first.stop()

    second = serve(make_app(service, "t"), "127.0.0.1", port)
    assert httpx.get(f"{second.url}/healthz", trust_env=False).status_code == 200
    second.stop()


def test_answers_are_sent_at_once(service: FakeService) -> None:
    server = serve(make_app(service, "t"), "127.0.0.1", 0)

    # asyncio turns Nagle's algorithm off only for sockets that name their protocol
    protocol = server._listeners[0].proto

    server.stop()
    assert protocol == socket.IPPROTO_TCP
