"""Tests of what must survive a crash, and of history that nobody can rewrite."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import sqlalchemy as sa

from hybrid.adapters.ledger import SqlLedger, open_ledger, sqlite_url
from hybrid.core.errors import LedgerError
from hybrid.core.models import Caps
from tests.adapters.ledger.builders import EXIT_S, NOW_S, make_event, make_instance, terminated
from tests.adapters.ledger.processes import bare_sql, run_program
from tests.postgres import PostgresServer


def test_an_intent_survives_a_kill_right_after_request(url: str) -> None:
    code = """
        ledger = open_ledger(sys.argv[1])
        ledger.acquire("doomed", now_s=NOW_S)
        ledger.request(make_instance(), caps=Caps(node_count=1), exit_s=EXIT_S, now_s=NOW_S)
        os.kill(os.getpid(), signal.SIGKILL)
    """

    status, _, _ = run_program(code, url)

    assert status == -9
    again = open_ledger(url)
    again.acquire("heir", now_s=NOW_S)
    assert again.live_instances() == (make_instance(),)
    assert [line.kind for line in again.events()] == ["instance_requested"]
    again.save(terminated(make_instance(), now_s=NOW_S + 3600))
    assert len(again.spends()) == 1
    again.close()


@pytest.mark.parametrize("table", ["instances", "reservations", "events"])
def test_a_kill_inside_request_leaves_nothing(url: str, table: str) -> None:
    code = """
        from sqlalchemy import Engine, event

        ledger = open_ledger(sys.argv[1])
        ledger.acquire("doomed", now_s=NOW_S)

        @event.listens_for(Engine, "after_cursor_execute")
        def after(connection, cursor, text, *rest):
            if text.startswith("INSERT INTO " + sys.argv[2]):
                os.kill(os.getpid(), signal.SIGKILL)

        ledger.request(make_instance(), caps=Caps(), exit_s=EXIT_S, now_s=NOW_S)
    """

    status, _, _ = run_program(code, url, table)

    assert status == -9
    again = open_ledger(url)
    assert again.instances() == ()
    assert again.events() == ()
    again.acquire("heir", now_s=NOW_S)
    again.request(make_instance(), caps=Caps(node_count=1), exit_s=EXIT_S, now_s=NOW_S)
    again.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET kind = 'forged'",
        "UPDATE events SET seq = seq + 100",
        "DELETE FROM events",
        "DELETE FROM events WHERE seq = 1",
    ],
)
def test_events_cannot_be_changed_or_deleted(ledger: SqlLedger, url: str, statement: str) -> None:
    ledger.append(make_event("first"), make_event("second"))
    before = ledger.events()

    with pytest.raises(sa.exc.DBAPIError, match="append-only"), bare_sql(url) as connection:
        connection.execute(sa.text(statement))

    assert ledger.events() == before


def test_events_cannot_be_replaced_in_sqlite(sqlite_path: Path) -> None:
    url = sqlite_url(sqlite_path)
    ledger = open_ledger(url)
    ledger.acquire("test", now_s=NOW_S)
    ledger.append(make_event("first"))

    with pytest.raises(sa.exc.DBAPIError, match="append-only"), bare_sql(url) as connection:
        connection.execute(
            sa.text("INSERT OR REPLACE INTO events VALUES (1, 0, 1, 'forged', '', '{}')")
        )

    assert [line.kind for line in ledger.events()] == ["first"]
    ledger.close()


@pytest.mark.postgres
def test_events_cannot_be_truncated_in_postgresql(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_schema()
    open_ledger(url).close()

    with pytest.raises(sa.exc.DBAPIError, match="append-only"), bare_sql(url) as connection:
        connection.execute(sa.text("TRUNCATE events"))


def test_a_number_of_history_is_never_given_twice(ledger: SqlLedger) -> None:
    ledger.append(make_event("first"))
    with contextlib.suppress(LedgerError), ledger._writing("fail late") as connection:
        ledger._add(connection, make_event("never"))
        raise LedgerError("on purpose")
    ledger.append(make_event("second"))

    first, second = ledger.events()

    assert second.seq > first.seq


def test_sqlite_is_set_to_survive_a_power_cut(sqlite_path: Path) -> None:
    ledger = open_ledger(sqlite_url(sqlite_path))

    with ledger._store.reading("look") as connection:
        found = [
            connection.execute(sa.text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]

    assert found == ["wal", 2, 1, 10_000]
    ledger.close()


@pytest.mark.postgres
def test_postgresql_waits_for_its_disk_even_if_its_default_is_not_to(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.new_database()
    with bare_sql(url) as connection:
        name = connection.execute(sa.text("SELECT current_database()")).scalar()
        connection.execute(sa.text(f"ALTER DATABASE {name} SET synchronous_commit = off"))
        connection.execute(
            sa.text(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
        )
    ledger = open_ledger(url)

    with ledger._store.reading("look") as connection:
        found = [
            connection.execute(sa.text(f"SHOW {setting}")).scalar()
            for setting in (
                "synchronous_commit",
                "transaction_isolation",
                "lock_timeout",
                "idle_in_transaction_session_timeout",
            )
        ]

    assert found == ["on", "read committed", "10s", "10s"]
    ledger.close()


@pytest.mark.postgres
def test_the_ledger_goes_on_after_postgresql_dropped_every_connection(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.new_database()
    ledger = open_ledger(url)
    ledger.acquire("test", now_s=NOW_S)
    drop_all = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname LIKE 'test%' AND pid <> pg_backend_pid()"
    )

    def write_while_it_drops() -> None:
        with ledger._writing("hold on") as connection:
            postgres_server.psql(drop_all)
            ledger._add(connection, make_event("never"))

    with pytest.raises(LedgerError, match=r"cannot hold on: .* cannot be reached"):
        write_while_it_drops()
    ledger.append(make_event("after"))
    postgres_server.psql(drop_all)
    ledger.check_epoch()

    assert [line.kind for line in ledger.events()] == ["after"]
    ledger.close()
