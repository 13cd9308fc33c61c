"""Tests of opening: an empty database, a newer one, two at once, a crash in the middle."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from hybrid.adapters.ledger import SqlLedger, migrate, open_ledger, schema
from hybrid.adapters.ledger.store import Store
from hybrid.core.errors import LedgerError
from tests.adapters.ledger.builders import NOW_S
from tests.adapters.ledger.processes import bare_sql, line_from, run_program, say, start_program


@contextmanager
def opened(url: str) -> Iterator[SqlLedger]:
    ledger = open_ledger(url)
    yield ledger
    ledger.close()


def set_revision(url: str, revision: str) -> None:
    with bare_sql(url) as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :r"), {"r": revision})


def test_the_newest_migration_is_the_one_the_program_expects() -> None:
    folder = Path(migrate.__file__).parent / "migrations"

    assert ScriptDirectory(str(folder)).get_heads() == [schema.HEAD]


def test_an_empty_database_gets_the_tables_of_the_schema(url: str) -> None:
    open_ledger(url).close()

    with bare_sql(url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []


def test_opening_again_changes_nothing(url: str) -> None:
    first = open_ledger(url)
    first.acquire("test", now_s=NOW_S)
    first.close()

    second = open_ledger(url)

    assert second.cluster_id == first.cluster_id
    assert second.acquire("test", now_s=NOW_S) == 2
    second.close()


def test_two_ledgers_are_two_clusters(url: str, tmp_path: Path) -> None:
    one, other = open_ledger(url), open_ledger(f"sqlite:///{tmp_path / 'other.db'}")

    assert one.cluster_id != other.cluster_id
    one.close()
    other.close()


@pytest.mark.parametrize("revision", ["0002", "9999", "a1b2c3d4e5f6"])
def test_a_newer_schema_is_refused(url: str, revision: str) -> None:
    open_ledger(url).close()
    set_revision(url, revision)

    with pytest.raises(LedgerError, match=rf"schema '{revision}'.*up to '0001'.*install"):
        open_ledger(url)


def test_who_opens_during_a_migration_waits_and_finds_it_done(url: str) -> None:
    first = Store(url)
    first.create_file()
    found: list[SqlLedger] = []
    second = threading.Thread(target=lambda: found.append(open_ledger(url)))

    with first.writing("migrate slowly") as connection:
        migrate.migrate(connection, where="here")
        second.start()
        second.join(timeout=0.3)
        is_waiting = second.is_alive()
    second.join()

    assert is_waiting
    assert [ledger.acquire("test", now_s=NOW_S) for ledger in found] == [1]
    found[0].close()
    first.close()


@pytest.mark.slow
def test_programs_that_open_an_empty_database_at_once_agree(url: str) -> None:
    code = """
        print("ready", flush=True)
        sys.stdin.readline()
        ledger = open_ledger(sys.argv[1])
        print(ledger.cluster_id, flush=True)
        ledger.acquire("one of them", now_s=NOW_S)
    """
    programs = [start_program(code, url) for _ in range(4)]
    for program in programs:
        assert line_from(program) == "ready"
    for program in programs:
        say(program, "go")
    answers = [program.communicate(timeout=120) for program in programs]

    assert [err for _, err in answers] == [""] * 4
    assert len({out for out, _ in answers}) == 1
    with opened(url) as ledger:
        assert ledger.acquire("test", now_s=NOW_S) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE alembic_version",
        "CREATE TABLE jobs",
        "CREATE TRIGGER events_no",
        "INSERT INTO alembic_version",
        "INSERT INTO leader",
        "COMMIT",
    ],
)
def test_a_crash_in_the_middle_of_a_migration_is_repaired(url: str, statement: str) -> None:
    code = """
        from sqlalchemy import Engine, event

        @event.listens_for(Engine, "before_cursor_execute")
        def before(connection, cursor, text, *rest):
            if sys.argv[2] in text:
                os.kill(os.getpid(), signal.SIGKILL)

        @event.listens_for(Engine, "commit")
        def commit(connection):
            if sys.argv[2] == "COMMIT":
                os.kill(os.getpid(), signal.SIGKILL)

        open_ledger(sys.argv[1])
    """
    status, _, _ = run_program(code, url, statement)
    assert status == -9
    with bare_sql(url) as connection:
        assert sa.inspect(connection).get_table_names() == []

    with opened(url) as ledger:
        assert ledger.acquire("test", now_s=NOW_S) == 1


def test_an_up_to_date_ledger_opens_without_loading_alembic(url: str) -> None:
    open_ledger(url).close()

    status, out, err = run_program(
        "open_ledger(sys.argv[1]).close(); print('alembic' in sys.modules)", url
    )

    assert (status, out, err) == (0, "False", "")


def test_a_database_of_something_else_is_refused_and_left_alone(url: str) -> None:
    with bare_sql(url) as connection:
        connection.execute(sa.text("CREATE TABLE jobs (theirs INTEGER)"))

    with pytest.raises(LedgerError, match="cannot create the tables"):
        open_ledger(url)

    with bare_sql(url) as connection:
        assert sa.inspect(connection).get_table_names() == ["jobs"]
