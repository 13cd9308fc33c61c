"""A real API server over the fake controller; one server, a fresh controller per test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest

from hybrid.api.server import ApiServer, make_app, serve
from hybrid.control.service import Service
from tests.api.fake_service import FakeService

TOKEN = "t0ken-for-tests"
PACKAGE_LIMIT_BYTES = 4096


class Seat:
    """Passes every call on to the controller of the test that runs."""

    def __init__(self) -> None:
        self.service = FakeService()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.service, name)


def start_server(service: object) -> ApiServer:
    app = make_app(cast(Service, service), TOKEN, package_limit_bytes=PACKAGE_LIMIT_BYTES)
    return serve(app, "127.0.0.1", 0)


@pytest.fixture(scope="session")
def seat_and_server() -> Iterator[tuple[Seat, ApiServer]]:
    seat = Seat()
    running = start_server(seat)
    yield seat, running
    running.stop()


@pytest.fixture
def service(seat_and_server: tuple[Seat, ApiServer]) -> FakeService:
    seat, _ = seat_and_server
    seat.service = FakeService()
    return seat.service


@pytest.fixture
def server(service: FakeService, seat_and_server: tuple[Seat, ApiServer]) -> ApiServer:
    _, running = seat_and_server
    return running


@pytest.fixture
def http(server: ApiServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False) as client:
        yield client
