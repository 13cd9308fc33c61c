"""The ledger in SQLite or PostgreSQL."""

from __future__ import annotations

from hybrid.adapters.ledger.ledger import SqlLedger
from hybrid.adapters.ledger.opening import open_ledger, sqlite_url

__all__ = ["SqlLedger", "open_ledger", "sqlite_url"]
