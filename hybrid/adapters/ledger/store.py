"""The connection to the database: transactions, durability, and the fence of the epoch."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, select
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ledger.errors import translated
from hybrid.adapters.ledger.schema import leader
from hybrid.core.errors import ConfigError, FencedError, LedgerError, LedgerLostError

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

WAIT_S: Final = 10
"""How long a lock may be waited for. Longer than any honest write, shorter than a lease."""

_BEGIN: Final = "hybrid_begin"

_PG_CONNECT: Final = {
    "connect_timeout": WAIT_S,
    # A server that vanished from the network is noticed in half a minute, not in hours.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 1000 * 2 * WAIT_S,
}


class Store:
    """One database, with one transaction that writes at a time.

    A writing transaction begins by locking the leader's row (SQLite: the whole database), so
    all writers, of every process, come one after the other. That is what makes the epoch a
    fence, the caps exact, and `events.seq` the order of commits.

    Args:
        url: SQLAlchemy URL: `sqlite:////file` or `postgresql+psycopg://...`.
    """

    def __init__(self, url: str) -> None:
        self._url = _checked(url)
        self._path = Path(self._url.database or "") if self.is_sqlite else None
        self._file_id: tuple[int, int] | None = None
        self._is_closed = False
        # Threads of this process queue here, fairly; SQLite's own waiting is a lottery.
        self._write_lock = threading.Lock()
        self._engine = _engine(self._url)
        event.listen(self._engine, "connect", _prepare_sqlite if self.is_sqlite else _prepare_pg)
        if self.is_sqlite:
            event.listen(self._engine, "begin", _begin_sqlite)
        self._writer = self._engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})

    @property
    def where(self) -> str:
        """The ledger in words, without its password."""
        if self._path is not None:
            return str(self._path)
        shown = self._url.difference_update_query(("password", "sslpassword"))
        return shown.render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether the ledger is a file of this machine."""
        return self._url.get_backend_name() == "sqlite"

    @contextmanager
    def reading(self, what: str) -> Iterator[Connection]:
        """Open a transaction that only reads.

        Args:
            what: What is tried, for the error: `cannot <what>: ledger ...`.

        Raises:
            LedgerError: The store cannot be read.
        """
        self._refuse_closed(what)
        with translated(what, where=self.where), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, what: str) -> Iterator[Connection]:
        """Open a transaction that writes; commit at the end, roll back on any error.

        Raises:
            LedgerError: Nothing was written, or, when a server was lost inside the commit
                itself, all of it: read again to know.
        """
        self._refuse_closed(what)
        if not self._write_lock.acquire(timeout=3 * WAIT_S):
            raise LedgerError(f"cannot {what}: ledger {self.where}: other writes hang; try again")
        try:
            self.refuse_replaced(what)
            with translated(what, where=self.where), self._writer.begin() as connection:
                yield connection
        finally:
            self._write_lock.release()

    def create_file(self) -> None:
        """Make SQLite's file, for this user's eyes only, if there is none.

        A server needs no file: then this does nothing.
        """
        if self._path is not None:
            with translated("open", where=self.where):
                self._path.touch(mode=0o600)
            self._file_id = _file_id(self._path)

    def refuse_replaced(self, what: str) -> None:
        """Raise unless the file is still the one that was opened.

        On Linux a deleted file can still be written, by us alone: no later controller would
        ever find those promises.
        """
        if self._path is None or self._file_id is None:
            return
        if _file_id(self._path) != self._file_id:
            raise LedgerLostError(
                f"cannot {what}: ledger {self.where} was deleted or replaced while it was in use; "
                "put the same file back at once, or let `hybrid up` make a new one"
            )

    def close(self) -> None:
        """Close all connections; the store cannot be used again."""
        self._is_closed = True
        self._engine.dispose()

    def _refuse_closed(self, what: str) -> None:
        if self._is_closed:
            raise LedgerError(f"cannot {what}: ledger {self.where} is closed; open it again")


def require_epoch(connection: Connection, epoch: int, *, is_locking: bool) -> None:
    """Raise `FencedError` unless `epoch` is the newest.

    Args:
        connection: A transaction.
        epoch: What the caller holds.
        is_locking: Keep it so until the transaction ends: no other writer may pass.
    """
    query = select(leader.c.epoch, leader.c.holder)
    # SQLite has no row locks and needs none: BEGIN IMMEDIATE took the whole database.
    row = connection.execute(query.with_for_update() if is_locking else query).one()
    if epoch == 0:
        raise FencedError("this process has not acquired the ledger: acquire it before writing")
    if row.epoch != epoch:
        raise FencedError(
            f"controller '{row.holder}' took over with epoch {row.epoch}; this process holds epoch "
            f"{epoch} and must stop: only one controller may run for a cluster"
        )


def _checked(url: str) -> URL:
    hint = "write postgresql+psycopg://user@host/database, or leave it out for SQLite"
    try:
        parsed = make_url(url)
    except ArgumentError as err:
        raise ConfigError(f"the ledger's URL cannot be read; {hint}") from err
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise ConfigError(f"the ledger cannot be kept in '{parsed.drivername}'; {hint}")
    # Not in memory, which a crash forgets; not relative, which another folder forgets.
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_absolute():
        raise ConfigError(
            f"the ledger's URL names no file by its full path: write sqlite:////path; or {hint}"
        )
    return parsed


def _engine(url: URL) -> Engine:
    is_sqlite = url.get_backend_name() == "sqlite"
    try:
        return create_engine(
            url,
            # Never a value in an error or a log: a job's environment may hold a secret.
            hide_parameters=True,
            pool_size=2,
            max_overflow=8,
            pool_timeout=WAIT_S,
            # A server that was restarted is seen before a transaction, not inside it.
            pool_pre_ping=not is_sqlite,
            connect_args={"timeout": WAIT_S} if is_sqlite else _PG_CONNECT,
            isolation_level=None if is_sqlite else "READ COMMITTED",
        )
    except (ImportError, NoSuchModuleError) as err:
        raise ConfigError(
            "a ledger in PostgreSQL needs its driver: pip install 'hybrid-burst[postgres]'"
        ) from err


def _prepare_sqlite(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    # We begin transactions ourselves: the driver would begin them too late, after the reads.
    connection.isolation_level = None
    _switch_to_wal(connection)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def _switch_to_wal(connection: DBAPIConnection) -> None:
    """Turn the write-ahead log on, or leave it on.

    Two programs that open a new file together meet here, and this is the one lock that SQLite
    does not wait for itself.
    """
    clock = SystemClock()
    end_s = clock.monotonic_s() + WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as err:
            is_busy = err.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or clock.monotonic_s() > end_s:
                raise
            clock.sleep(0.02)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))


def _prepare_pg(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    connection.autocommit = True
    for setting in (
        # An intent that is only in the server's memory is not an intent.
        "synchronous_commit = on",
        f"lock_timeout = '{WAIT_S}s'",
        # A paused old leader must not hold the leader's row for ever.
        f"idle_in_transaction_session_timeout = '{WAIT_S}s'",
    ):
        connection.execute(f"SET {setting}")
    connection.autocommit = False


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
