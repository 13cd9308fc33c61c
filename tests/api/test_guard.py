"""Tokens, sizes and nonsense: nothing unexpected reaches the controller."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid.api.server import ApiServer
from tests.api.conftest import TOKEN
from tests.api.fake_service import FakeService

FUZZ = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
POSTS = ("jobs", "drain", "pause", "resume", "gc", "down", "join")


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"],
)
def test_a_missing_or_wrong_token_is_401(server: ApiServer, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}

    answer = httpx.get(f"{server.url}/api/v1/status", headers=headers, trust_env=False)

    assert answer.status_code == 401
    assert answer.json()["error"]["kind"] == "TokenError"


def test_two_authorization_headers_are_401(server: ApiServer) -> None:
    headers = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer wrong")]

    answer = httpx.get(f"{server.url}/api/v1/status", headers=headers, trust_env=False)

    assert answer.status_code == 401


def test_unknown_paths_do_not_show_that_they_are_unknown(server: ApiServer) -> None:
    assert httpx.get(f"{server.url}/api/v1/nothing", trust_env=False).status_code == 401


def test_the_scheme_may_be_written_in_any_case(server: ApiServer) -> None:
    headers = {"Authorization": f"bearer {TOKEN}"}

    answer = httpx.get(f"{server.url}/api/v1/status", headers=headers, trust_env=False)

    assert answer.status_code == 200


@pytest.mark.slow
@FUZZ
@given(token=st.binary(max_size=60))
def test_no_other_token_opens_the_api(server: ApiServer, token: bytes) -> None:
    clean = bytes(byte for byte in token if 32 < byte < 127 or byte > 127)
    headers = {b"Authorization": b"Bearer x" + clean}

    answer = httpx.get(f"{server.url}/api/v1/status", headers=headers, trust_env=False)

    assert answer.status_code == 401


def test_a_package_over_the_limit_is_413(http: httpx.Client, service: FakeService) -> None:
    answer = http.put("/api/v1/packages/big.zip", content=b"PK\x03\x04" + bytes(5000))

    assert answer.status_code == 413
    assert "MiB" in answer.json()["error"]["message"]
    assert service.packages == {}


def test_a_body_without_a_length_is_counted_too(http: httpx.Client, service: FakeService) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"PK\x03\x04"
        for _ in range(5):
            yield bytes(1000)

    answer = http.put("/api/v1/packages/big.zip", content=pieces())

    assert answer.status_code == 413
    assert service.packages == {}


def test_a_large_json_body_is_413(http: httpx.Client) -> None:
    answer = http.post("/api/v1/jobs", content=b" " * (2**20 + 1))

    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("ok.zip", b"not a zip", 400),
        ("ok.zip", b"", 400),
        ("..%2Fup.zip", b"PK\x03\x04", 404),
        ("-rf.zip", b"PK\x03\x04", 422),
        ("a" * 200, b"PK\x03\x04", 422),
        ("%E5%A5%BD.zip", b"PK\x03\x04", 422),
    ],
    ids=["no-zip", "empty", "path-escape", "dash", "long", "unicode"],
)
def test_a_bad_package_is_refused(
    http: httpx.Client, service: FakeService, name: str, content: bytes, status: int
) -> None:
    assert http.put(f"/api/v1/packages/{name}", content=content).status_code == status
    assert service.packages == {}


def test_broken_json_is_400_and_names_the_place(http: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}

    answer = http.post("/api/v1/drain", content=b'{"target": ', headers=headers)

    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("body.")


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("jobs", {"spec": {"entrypoint": ""}}, "entrypoint: "),
        ("jobs", {"spec": {"entrypoint": "x", "gpu": 1}}, "gpu: "),
        ("jobs", {"spec": {"entrypoint": "x"}, "job_id": "../x"}, "job_id: "),
        ("drain", {"target": "i-1", "deadline_s": -1}, "deadline_s: "),
        ("drain", {"target": ""}, "target: "),
        ("pause", {"direction": "up"}, "direction: "),
        ("down", {"drain_s": "soon"}, "drain_s: "),
        ("join", {"instance_id": "i-1"}, "join_token: "),
    ],
)
def test_a_body_of_the_wrong_shape_is_422_and_names_the_field(
    http: httpx.Client, path: str, body: object, field: str
) -> None:
    answer = http.post(f"/api/v1/{path}", json=body)

    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith(field)


@pytest.mark.parametrize("field", ["gpus", "cpus"])
def test_an_endless_number_is_422(http: httpx.Client, field: str) -> None:
    """Stored as JSON it would be `null`, and the row could not be read again."""
    headers = {"Content-Type": "application/json"}
    content = f'{{"spec": {{"entrypoint": "x", "{field}": 1e400}}}}'.encode()

    answer = http.post("/api/v1/jobs", content=content, headers=headers)

    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith(f"{field}: ")


@pytest.mark.parametrize("query", ["limit=0", "limit=99999", "after=-1", "limit=x"])
def test_a_query_out_of_bounds_is_422(http: httpx.Client, query: str) -> None:
    assert http.get(f"/api/v1/events?{query}").status_code == 422


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.slow
@FUZZ
@given(path=st.sampled_from(POSTS), body=st.binary(max_size=200))
def test_random_bytes_are_refused_with_the_one_shape(
    http: httpx.Client, path: str, body: bytes
) -> None:
    headers = {"Content-Type": "application/json"}

    answer = http.post(f"/api/v1/{path}", content=body, headers=headers)

    assert answer.status_code in (400, 422)
    assert set(answer.json()["error"]) == {"kind", "message"}


@pytest.mark.slow
@FUZZ
@given(path=st.sampled_from(POSTS), body=JSON)
def test_random_json_never_breaks_the_server(http: httpx.Client, path: str, body: object) -> None:
    import json

    headers = {"Content-Type": "application/json"}
    answer = http.post(f"/api/v1/{path}", content=json.dumps(body).encode(), headers=headers)

    assert answer.status_code in (200, 400, 422)


def test_no_token_is_ever_logged(http: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="uvicorn"):
        http.get("/api/v1/status")
        http.get("/api/v1/status", headers={"Authorization": "Bearer canary-secret"})

    assert TOKEN not in caplog.text
    assert "canary-secret" not in caplog.text
