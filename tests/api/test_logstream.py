"""Log streams: they follow, they end, and they notice that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from hybrid.api.server import ApiServer
from hybrid.core.errors import ClusterError
from tests.api.conftest import TOKEN, start_server
from tests.api.fake_service import FakeService

LOGS = "/api/v1/jobs/j-running/logs"


def test_logs_are_the_whole_output_as_plain_text(http: httpx.Client) -> None:
    answer = http.get(LOGS)

    assert answer.text == "step 1\nstep 2 \u6b65\u9aa4\ndone\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_following_gets_each_piece_when_it_comes(http: httpx.Client, service: FakeService) -> None:
    service.log_gate.clear()
    with http.stream("GET", LOGS, params={"follow": True}) as answer:
        pieces = answer.iter_text()

        first = next(pieces)
        service.log_gate.set()
        rest = "".join(pieces)

    assert first == "step 1\n"
    assert rest.endswith("done\n")


def test_the_source_is_closed_when_the_reader_goes_away(
    http: httpx.Client, service: FakeService
) -> None:
    service.log_gate.clear()

    with http.stream("GET", LOGS, params={"follow": True}) as answer:
        next(answer.iter_text())

    assert service.followers_ended.acquire(timeout=10)


@pytest.mark.slow
def test_the_server_stops_while_somebody_follows(service: FakeService) -> None:
    service.log_gate.clear()
    own_server = start_server(service)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.stream(
        "GET", f"{own_server.url}{LOGS}?follow=1", headers=headers, trust_env=False
    ) as answer:
        pieces = answer.iter_text()
        next(pieces)

        own_server.stop()

        with pytest.raises(httpx.RemoteProtocolError):
            list(pieces)


def test_an_output_that_breaks_does_not_look_complete(
    http: httpx.Client, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(_job_id: str, *, is_following: bool = False) -> Iterator[str]:
        yield "step 1\n"
        raise ClusterError("Ray went away")

    monkeypatch.setattr(service, "job_logs", breaking)

    with (
        pytest.raises(httpx.RemoteProtocolError),
        http.stream("GET", LOGS, params={"follow": True}) as answer,
    ):
        list(answer.iter_text())


def test_an_output_that_cannot_be_read_is_an_error_with_a_status(
    http: httpx.Client, service: FakeService
) -> None:
    service.problem = ClusterError("Ray does not answer")

    assert http.get(LOGS).status_code == 503


def test_readers_beyond_the_limit_are_told_so_and_seats_come_back(
    http: httpx.Client, service: FakeService, server: ApiServer
) -> None:
    service.log_gate.clear()
    limits = httpx.Limits(max_connections=None)
    headers = http.headers
    with httpx.Client(base_url=server.url, headers=headers, limits=limits) as many:
        open_streams = [
            many.send(many.build_request("GET", f"{LOGS}?follow=1"), stream=True) for _ in range(64)
        ]

        refused = many.get(LOGS)
        for stream in open_streams:
            stream.close()
        for _ in open_streams:
            assert service.followers_ended.acquire(timeout=10)
        again = many.get(LOGS)

    assert refused.status_code == 409
    assert "64 log streams" in refused.json()["error"]["message"]
    assert again.status_code == 200


def test_many_small_pieces_arrive_in_order(http: httpx.Client, service: FakeService) -> None:
    service.log_pieces = [f"{index}\n" for index in range(2000)]

    text = http.get(LOGS, params={"follow": True}).text

    assert text == "".join(service.log_pieces)
