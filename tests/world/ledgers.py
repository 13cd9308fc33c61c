"""Real ledgers that open fast: the tables are made once, then the file is copied."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from sqlalchemy import update

from hybrid.adapters.ledger import SqlLedger, open_ledger, sqlite_url
from hybrid.adapters.ledger.schema import meta
from hybrid.adapters.ledger.store import Store

# A disk in memory where there is one: a thousand histories wait for ten thousand commits.
_MEMORY = Path("/dev/shm")


@contextmanager
def fast_folder() -> Iterator[Path]:
    """Yield a folder, in memory if possible, that is gone afterwards."""
    base = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="hybrid-test-", dir=base) as folder:
        yield Path(folder)


def open_world_ledger(folder: Path) -> SqlLedger:
    """Open the ledger in `folder`; a new one is a copy of an empty one, with an id of its own."""
    path = folder / "ledger.db"
    is_new = not path.exists()
    if is_new:
        path.write_bytes(_empty())
    if is_new:
        store = Store(sqlite_url(path))
        with store.writing("name the ledger") as connection:
            connection.execute(update(meta).values(cluster_id=f"c-{folder.name}"))
        store.close()
    return open_ledger(sqlite_url(path))


@cache
def _empty() -> bytes:
    folder = Path(tempfile.mkdtemp(prefix="hybrid-test-"))
    open_ledger(sqlite_url(folder / "ledger.db")).close()
    content = (folder / "ledger.db").read_bytes()
    shutil.rmtree(folder)
    return content
