"""Turns what a database says into a `LedgerError` that says what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hybrid.core.errors import LedgerError


class Trouble(NamedTuple):
    """What is wrong, and what a person should do."""

    problem: str
    advice: str


_FULL = Trouble("the disk is full", "free some space; nothing was stored and the next try may work")
_LOCKED = Trouble(
    "another process keeps it locked",
    "wait, or end the other hybrid process that uses it (it may be a paused one)",
)
_NOT_ALLOWED = Trouble(
    "this user may not write it", "give this user the right to write it and the folder it is in"
)
_CANNOT_OPEN = Trouble(
    "it cannot be opened",
    "check that its folder exists and that this user may read and write there",
)
_DAMAGED = Trouble(
    "it is damaged, or it is not a ledger",
    "restore it from a backup; without one, end the instances that carry this cluster's tag in the "
    "cloud consoles before you move the file away",
)
_DISK = Trouble(
    "the disk reports an error",
    "check the disk: a full quota, a file size limit, or broken hardware",
)
_DOWN = Trouble(
    "the database server cannot be reached",
    "check that it runs and that the address is right; the next try connects again",
)
_REFUSED = Trouble(
    "the database server refuses the user or the database",
    "check user, password and database name in the ledger's URL",
)
_STRANGE = Trouble("the database refuses it", "see the database's own log; this may be a bug")

_SQLITE: Mapping[int, Trouble] = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PERM: _NOT_ALLOWED,
    sqlite3.SQLITE_READONLY: _NOT_ALLOWED,
    sqlite3.SQLITE_CANTOPEN: _CANNOT_OPEN,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_IOERR: _DISK,
}

# By SQLSTATE, the longest match wins; see the PostgreSQL manual, appendix A.
_POSTGRESQL: Mapping[str, Trouble] = {
    "08": _DOWN,
    "25006": _NOT_ALLOWED,
    "25P03": _LOCKED,
    "28": _REFUSED,
    "3D000": _REFUSED,
    "42501": _NOT_ALLOWED,
    "53100": _FULL,
    "53300": Trouble("the database server has no free connection", "raise max_connections"),
    "55P03": _LOCKED,
    "57P": _DOWN,
    "58": _DISK,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}


@contextmanager
def translated(what: str, *, where: str) -> Iterator[None]:
    """Raise `LedgerError` for any database error inside the block.

    Args:
        what: What is tried, after "cannot", such as `save instance i-1`.
        where: The ledger, without its password.
    """
    try:
        yield
    except PoolTimeoutError as err:
        raise LedgerError(
            f"cannot {what}: ledger {where}: too many callers at a time; try again"
        ) from err
    except (SQLAlchemyError, sqlite3.Error, OSError, UnicodeError) as err:
        trouble = _trouble(err)
        raise LedgerError(
            f"cannot {what}: ledger {where}: {trouble.problem} ({_own_words(err)}); "
            f"{trouble.advice}"
        ) from err


def _trouble(err: Exception) -> Trouble:
    cause = _cause(err)
    if isinstance(cause, PermissionError):
        return _NOT_ALLOWED
    if isinstance(cause, OSError):
        return _FULL if cause.errno in (errno.ENOSPC, errno.EDQUOT) else _CANNOT_OPEN
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0)
        # What SQLite says when there is no room for the index of its journal.
        if code == sqlite3.SQLITE_IOERR_SHMSIZE:
            return _FULL
        # Extended codes carry the plain code in their low byte.
        return _SQLITE.get(code & 0xFF, _STRANGE)
    state = getattr(cause, "sqlstate", None)
    if state is None:
        # psycopg: no SQLSTATE means the server was not there to give one.
        return _DOWN if type(cause).__name__ == "OperationalError" else _STRANGE
    matches = [prefix for prefix in _POSTGRESQL if state.startswith(prefix)]
    return _POSTGRESQL[max(matches, key=len)] if matches else _STRANGE


def _own_words(err: Exception) -> str:
    """Return the database's first line only: the rest may show values of the row."""
    lines = str(_cause(err)).strip().splitlines()
    return lines[0].strip() if lines else type(_cause(err)).__name__


def _cause(err: Exception) -> BaseException:
    orig = err.orig if isinstance(err, DBAPIError) else None
    return err if orig is None else orig
