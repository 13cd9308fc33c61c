"""Opens a ledger: the file, the tables, the cluster's id."""

from __future__ import annotations

import secrets
from pathlib import Path

from sqlalchemy import URL, insert, select

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ledger import migrate
from hybrid.adapters.ledger.ledger import SqlLedger
from hybrid.adapters.ledger.schema import leader, meta
from hybrid.adapters.ledger.store import Store


def sqlite_url(path: Path | str) -> str:
    """Return the URL of a ledger in the file at `path`, whatever characters it has."""
    return URL.create("sqlite", database=str(Path(path).absolute())).render_as_string()


def open_ledger(url: str, *, cluster_id: str = "") -> SqlLedger:
    """Open a ledger, make it if there is none, and bring its tables up to date.

    Args:
        url: `sqlite:////file` (see `sqlite_url`) or `postgresql+psycopg://user@host/database`.
        cluster_id: Of a new one; made up if `""`. One that exists keeps its own.

    Raises:
        ConfigError: The URL is none of ours.
        LedgerError: It cannot be opened, or a newer program wrote it.
    """
    store = Store(url)
    try:
        return SqlLedger(store, cluster_id=_prepare(store, cluster_id))
    except BaseException:
        store.close()
        raise


def _prepare(store: Store, wanted_id: str) -> str:
    """Bring the tables up to date and return the cluster's id."""
    store.create_file()
    with store.reading("open") as connection:
        is_ready = migrate.is_current(connection, where=store.where)
        found = connection.execute(select(meta.c.cluster_id)).scalar() if is_ready else None
    if found is not None:
        return str(found)
    with store.writing("create the tables") as connection:
        migrate.migrate(connection, where=store.where)
        found = connection.execute(select(meta.c.cluster_id)).scalar()
        if found is not None:
            return str(found)
        cluster_id = wanted_id or f"c-{secrets.token_hex(8)}"
        now_s = SystemClock().now_s()
        connection.execute(insert(meta).values(id=1, cluster_id=cluster_id, created_at_s=now_s))
        connection.execute(insert(leader).values(id=1, epoch=0, holder="", acquired_at_s=now_s))
        return cluster_id
