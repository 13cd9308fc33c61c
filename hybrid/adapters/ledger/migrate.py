"""Brings the tables to the schema of this program, in one transaction."""

from __future__ import annotations

import threading
from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table, text

from hybrid.adapters.ledger.schema import HEAD
from hybrid.core.errors import LedgerError

_VERSION_TABLE = table("alembic_version", column("version_num"))

_ALEMBIC_LOCK = threading.Lock()
"""Alembic's `context` and `op` are shared by the whole process."""

_PG_LOCK_KEY = 0x48594252
"""Names our advisory lock in PostgreSQL: two programs that open an empty database."""


def is_current(connection: Connection, *, where: str) -> bool:
    """Return whether the tables have the schema of this program; reads only.

    Raises:
        LedgerError: A newer program wrote them.
    """
    revision = _revision(connection)
    if revision is not None and not _is_known(revision):
        raise LedgerError(
            f"ledger {where} has schema '{revision}', this hybrid knows schemas up to '{HEAD}': "
            "a newer hybrid wrote it; install that version, or use another ledger"
        )
    return revision == HEAD


def migrate(connection: Connection, *, where: str) -> None:
    """Bring the tables to the schema of this program.

    All in the caller's transaction, which must lock out other writers: a crash in the middle
    leaves what was there before, and a second program finds the work done.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _PG_LOCK_KEY})
    if is_current(connection, where=where):
        return
    # Only here: an up-to-date ledger opens 0.1 s faster and 11 MB smaller without it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes["connection"] = connection
    with _ALEMBIC_LOCK:
        command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(select(_VERSION_TABLE.c.version_num)).scalar_one_or_none()


def _is_known(revision: str) -> bool:
    return revision.isdecimal() and len(revision) == len(HEAD) and revision <= HEAD
