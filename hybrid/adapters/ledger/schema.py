"""The tables, as the newest migration leaves them.

Whole values are kept as JSON text in `body`, the stored form of the frozen models; a column
beside it exists only where a query needs it. A test compares this module with the migrations.

To change the schema: write `migrations/versions/000N_<what>.py`, change the tables here, and
set `HEAD`. Revisions are four digits, so that a newer one can be told from a damaged one.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

HEAD = "0001"
"""The newest revision, here so that an up-to-date ledger opens without loading Alembic."""

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("cluster_id", Text, nullable=False),
    Column("created_at_s", Double, nullable=False),
    CheckConstraint("id = 1", name="meta_one_row"),
)

leader = Table(
    "leader",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),
    Column("acquired_at_s", Double, nullable=False),
    CheckConstraint("id = 1", name="leader_one_row"),
)

instances = Table(
    "instances",
    metadata,
    Column("instance_id", Text, primary_key=True),
    Column("provider", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_at_s", Double, nullable=False),
    Column("body", Text, nullable=False),
    Index("instances_by_state", "state"),
    Index("instances_by_created", "created_at_s", "instance_id"),
    Index("instances_by_provider", "provider"),
)

reservations = Table(
    "reservations",
    metadata,
    Column("instance_id", Text, ForeignKey("instances.instance_id"), primary_key=True),
    Column("from_s", Double, nullable=False),
    Column("usd_per_hour", Double, nullable=False),
    Column("gpu_count", Integer, nullable=False),
)

spends = Table(
    "spends",
    metadata,
    Column("instance_id", Text, ForeignKey("instances.instance_id"), primary_key=True),
    Column("provider", Text, nullable=False),
    Column("offer_id", Text, nullable=False),
    Column("reason_code", Text, nullable=False),
    Column("from_s", Double, nullable=False),
    Column("to_s", Double, nullable=False),
    Column("gpu_count", Integer, nullable=False),
    Column("usd", Double, nullable=False),
    Index("spends_by_end", "to_s"),
)

events = Table(
    "events",
    metadata,
    # SQLite counts up by itself only for a column declared exactly INTEGER.
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at_s", Double, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index("events_by_subject", "subject", "seq"),
    # Never give the number of a lost last row away a second time.
    sqlite_autoincrement=True,
)

failures = Table(
    "failures",
    metadata,
    Column("key", Text, primary_key=True),
    Column("body", Text, nullable=False),
)

mode = Table(
    "mode",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
    CheckConstraint("id = 1", name="mode_one_row"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("created_at_s", Double, nullable=False),
    Column("body", Text, nullable=False),
    Index("jobs_by_state", "state"),
    Index("jobs_by_created", "created_at_s", "job_id"),
)

joins = Table(
    "joins",
    metadata,
    Column("instance_id", Text, ForeignKey("instances.instance_id"), primary_key=True),
    Column("at_s", Double, nullable=False),
)
