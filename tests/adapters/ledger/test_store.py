"""Tests of the ledger's address, of servers that are not there, and of words in errors."""

from __future__ import annotations

import errno
import sqlite3
import threading
import traceback
from pathlib import Path

import psycopg.errors
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hybrid.adapters.ledger import SqlLedger, open_ledger, sqlite_url, store
from hybrid.adapters.ledger.errors import translated
from hybrid.core.errors import ConfigError, LedgerError
from hybrid.core.models import JobSpec
from tests.adapters.ledger.builders import NOW_S, make_event, make_job
from tests.adapters.ledger.processes import bare_sql, run_program
from tests.postgres import PostgresServer

# --- address ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql+pymysql://u@h/d", "cannot be kept in 'mysql"),
        ("postgresql+psycopg2://u@h/d", "cannot be kept in 'postgresql+psycopg2'"),
        ("ledger.db", "cannot be read"),
        ("", "cannot be read"),
        ("sqlite://", "no file by its full path"),
        ("sqlite:///:memory:", "no file by its full path"),
        ("sqlite:///ledger.db", "write sqlite:////path"),
    ],
)
def test_an_address_that_is_none_of_ours_is_a_mistake_of_configuration(
    url: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as info:
        open_ledger(url)

    assert problem in str(info.value)
    assert "write postgresql+psycopg://user@host/database" in str(info.value)


@pytest.mark.postgres
@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_the_short_names_of_postgresql_mean_our_driver(
    postgres_server: PostgresServer, scheme: str
) -> None:
    url = postgres_server.new_schema().replace("postgresql+psycopg", scheme)

    ledger = open_ledger(url)

    assert ledger.acquire("test", now_s=NOW_S) == 1
    ledger.close()


def test_a_missing_driver_is_named_with_the_command_that_installs_it() -> None:
    code = """
        sys.modules["psycopg"] = None
        try:
            open_ledger("postgresql+psycopg://u@h/d")
        except ConfigError as err:
            print(err)
    """

    _, out, _ = run_program(code)

    assert "pip install 'hybrid-burst[postgres]'" in out


# --- servers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://ann:canary@127.0.0.1:1/ledger",
        "postgresql+psycopg://ann@127.0.0.1:1/ledger?password=canary",
    ],
)
def test_a_server_that_is_not_there_is_named_without_the_password(url: str) -> None:
    with pytest.raises(LedgerError) as info:
        open_ledger(url)

    told = "".join(traceback.format_exception(info.value))
    assert "127.0.0.1:1/ledger: the database server cannot be reached" in str(info.value)
    assert "check that it runs" in str(info.value)
    assert "canary" not in told


@pytest.mark.postgres
def test_a_database_that_is_not_there_is_named(postgres_server: PostgresServer) -> None:
    with pytest.raises(LedgerError, match='database "no_such" does not exist'):
        open_ledger(postgres_server.url("no_such"))


@pytest.mark.postgres
def test_a_reading_user_is_told_that_it_may_not_write(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    open_ledger(url).close()
    name = sa.make_url(url).database or ""
    postgres_server.psql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    ledger = open_ledger(url)

    with pytest.raises(LedgerError, match="this user may not write it"):
        ledger.acquire("test", now_s=NOW_S)

    ledger.close()


# --- words --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        pytest.param(psycopg.errors.DiskFull("no room"), "the disk is full", id="full"),
        pytest.param(psycopg.errors.LockNotAvailable("x"), "keeps it locked", id="lock"),
        pytest.param(psycopg.errors.AdminShutdown("x"), "cannot be reached", id="shutdown"),
        pytest.param(psycopg.OperationalError("x"), "cannot be reached", id="no-server"),
        pytest.param(psycopg.errors.InvalidPassword("x"), "refuses the user", id="password"),
        pytest.param(psycopg.errors.InsufficientPrivilege("x"), "may not write", id="rights"),
        pytest.param(psycopg.errors.TooManyConnections("x"), "max_connections", id="connections"),
        pytest.param(psycopg.errors.IndexCorrupted("x"), "damaged", id="damaged"),
        pytest.param(psycopg.errors.IoError("x"), "disk reports an error", id="disk"),
        pytest.param(psycopg.errors.DivisionByZero("x"), "may be a bug", id="strange"),
        pytest.param(psycopg.DataError("NUL"), "may be a bug", id="data"),
        pytest.param(sqlite3.OperationalError("x"), "may be a bug", id="sqlite-strange"),
        pytest.param(OSError(errno.ENOSPC, "x"), "the disk is full", id="os-full"),
        pytest.param(OSError(errno.EACCES, "x"), "may not write", id="os-rights"),
        pytest.param(OSError(errno.ENOENT, "x"), "cannot be opened", id="os-missing"),
    ],
)
def test_every_trouble_gets_words_and_advice(cause: Exception, words: str) -> None:
    is_wrapped = not isinstance(cause, OSError)
    error = OperationalError("SELECT 1", {}, cause) if is_wrapped else cause

    with pytest.raises(LedgerError) as info, translated("save it", where="here"):
        raise error

    assert str(info.value).startswith("cannot save it: ledger here: ")
    assert words in str(info.value)


def test_a_cause_without_words_is_named_by_its_class() -> None:
    with pytest.raises(LedgerError, match=r"\(OperationalError\)"), translated("a", where="b"):
        raise OperationalError("SELECT 1", {}, psycopg.OperationalError())


def test_an_empty_pool_asks_to_try_again() -> None:
    with pytest.raises(LedgerError, match="too many callers"), translated("a", where="b"):
        raise PoolTimeoutError


def test_errors_show_no_value_of_a_row(ledger: SqlLedger, url: str) -> None:
    # A job's environment may hold a secret.
    secret = make_job().model_copy(
        update={"spec": JobSpec(entrypoint="python a.py", env={"TOKEN": "canary"})}
    )
    with bare_sql(url) as connection:
        connection.execute(sa.text("ALTER TABLE jobs RENAME TO jobs_away"))

    with pytest.raises(LedgerError) as info:
        ledger.save_job(secret)

    assert "jobs" in str(info.value)
    assert "canary" not in "".join(traceback.format_exception(info.value))


def test_text_that_no_database_takes_is_a_ledger_error(ledger: SqlLedger) -> None:
    with pytest.raises(LedgerError):
        ledger.job("\udc80")


# --- threads ------------------------------------------------------------------------------


def test_many_threads_read_and_write_at_once(ledger: SqlLedger) -> None:
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                ledger.append(make_event(f"by_{number}"))
                ledger.check_epoch()
                ledger.events(limit=5)
                ledger.mode()
        except LedgerError as err:
            problems.append(err)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    assert len(ledger.events()) == 30 * 5


def test_a_write_that_hangs_does_not_hang_the_others(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(sqlite_url(sqlite_path))
    ledger.acquire("test", now_s=NOW_S)
    monkeypatch.setattr(store, "WAIT_S", 0.05)
    problems: list[str] = []

    def write() -> None:
        try:
            ledger.append(make_event())
        except LedgerError as err:
            problems.append(str(err))

    with ledger._writing("hang"):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()

    assert len(problems) == 1
    assert "other writes hang" in problems[0]
    ledger.close()
