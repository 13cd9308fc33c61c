"""The first schema.

A migration never imports `schema.py`: it must build the same tables for ever.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _create_single_rows()
    _create_instances()
    _create_events()
    _create_the_rest()
    if op.get_bind().dialect.name == "postgresql":
        _guard_events_postgresql()
    else:
        _guard_events_sqlite()


def _create_single_rows() -> None:
    op.create_table(
        "meta",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("cluster_id", sa.Text, nullable=False),
        sa.Column("created_at_s", sa.Double, nullable=False),
        sa.CheckConstraint("id = 1", name="meta_one_row"),
    )
    op.create_table(
        "leader",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("acquired_at_s", sa.Double, nullable=False),
        sa.CheckConstraint("id = 1", name="leader_one_row"),
    )
    op.create_table(
        "mode",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.CheckConstraint("id = 1", name="mode_one_row"),
    )


def _create_instances() -> None:
    op.create_table(
        "instances",
        sa.Column("instance_id", sa.Text, primary_key=True),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created_at_s", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("instances_by_state", "instances", ["state"])
    op.create_index("instances_by_created", "instances", ["created_at_s", "instance_id"])
    op.create_index("instances_by_provider", "instances", ["provider"])
    op.create_table(
        "reservations",
        _instance_id(),
        sa.Column("from_s", sa.Double, nullable=False),
        sa.Column("usd_per_hour", sa.Double, nullable=False),
        sa.Column("gpu_count", sa.Integer, nullable=False),
    )
    op.create_table(
        "spends",
        _instance_id(),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("offer_id", sa.Text, nullable=False),
        sa.Column("reason_code", sa.Text, nullable=False),
        sa.Column("from_s", sa.Double, nullable=False),
        sa.Column("to_s", sa.Double, nullable=False),
        sa.Column("gpu_count", sa.Integer, nullable=False),
        sa.Column("usd", sa.Double, nullable=False),
    )
    op.create_index("spends_by_end", "spends", ["to_s"])
    op.create_table("joins", _instance_id(), sa.Column("at_s", sa.Double, nullable=False))


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("at_s", sa.Double, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("events_by_subject", "events", ["subject", "seq"])


def _create_the_rest() -> None:
    op.create_table(
        "failures",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created_at_s", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("jobs_by_state", "jobs", ["state"])
    op.create_index("jobs_by_created", "jobs", ["created_at_s", "job_id"])


def _guard_events_sqlite() -> None:
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events "
            "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
        )
    # INSERT OR REPLACE deletes the old row without firing the trigger on DELETE.
    op.execute(
        "CREATE TRIGGER events_no_replace BEFORE INSERT ON events "
        "WHEN EXISTS (SELECT 1 FROM events WHERE seq = NEW.seq) "
        "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
    )


def _guard_events_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION events_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'events are append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER events_no_change BEFORE UPDATE OR DELETE ON events "
        "FOR EACH ROW EXECUTE FUNCTION events_refuse_change()"
    )
    op.execute(
        "CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION events_refuse_change()"
    )


def _instance_id() -> sa.Column[str]:
    return sa.Column(
        "instance_id", sa.Text, sa.ForeignKey("instances.instance_id"), primary_key=True
    )
