"""Every ledger test runs on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.adapters.ledger import SqlLedger, open_ledger, sqlite_url
from tests.adapters.ledger.builders import NOW_S
from tests.postgres import PostgresServer, running_server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture(
    params=[
        pytest.param("sqlite"),
        pytest.param("postgres", marks=pytest.mark.postgres),
    ]
)
def url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return sqlite_url(request.getfixturevalue("sqlite_path"))
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_schema()


@pytest.fixture
def ledger(url: str) -> Iterator[SqlLedger]:
    """An open ledger whose writer we are."""
    opened = open_ledger(url)
    opened.acquire("test", now_s=NOW_S)
    yield opened
    opened.close()
