"""The ledger: see `hybrid.core.ports.Ledger` for what each method promises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Select, Table, delete, func, insert, select, update

from hybrid.adapters.ledger import rows, schema
from hybrid.adapters.ledger.budget import payments_of_month, require_caps
from hybrid.adapters.ledger.store import Store, require_epoch
from hybrid.core.cost import Payment, spend_of
from hybrid.core.errors import LedgerError
from hybrid.core.models import (
    Caps,
    Event,
    Instance,
    InstanceState,
    Job,
    JobState,
    OfferFailure,
    Spend,
)
from hybrid.core.ports import Mode


class SqlLedger:
    """See `hybrid.core.ports.Ledger`.

    Args:
        store: An open store with up-to-date tables.
        cluster_id: What the store says it is.
    """

    def __init__(self, store: Store, *, cluster_id: str) -> None:
        self._store = store
        self._cluster_id = cluster_id
        self._epoch = 0

    @property
    def cluster_id(self) -> str:
        """See `Ledger.cluster_id`."""
        return self._cluster_id

    @property
    def epoch(self) -> int:
        """See `Ledger.epoch`."""
        return self._epoch

    # --- the writer's seat ----------------------------------------------------------------

    def acquire(self, holder: str, *, now_s: float) -> int:
        """See `Ledger.acquire`."""
        with self._store.writing("take the writer's seat") as connection:
            connection.execute(
                update(schema.leader).values(
                    epoch=schema.leader.c.epoch + 1, holder=holder, acquired_at_s=now_s
                )
            )
            epoch = int(connection.execute(select(schema.leader.c.epoch)).scalar_one())
        self._epoch = epoch
        return epoch

    def check_epoch(self) -> None:
        """See `Ledger.check_epoch`."""
        what = "check the epoch"
        self._store.refuse_replaced(what)
        with self._store.reading(what) as connection:
            require_epoch(connection, self._epoch, is_locking=False)

    # --- instances ------------------------------------------------------------------------

    def request(self, instance: Instance, *, caps: Caps, exit_s: float, now_s: float) -> None:
        """See `Ledger.request`."""
        name, offer = instance.instance_id, instance.offer
        if instance.state is not InstanceState.REQUESTED:
            raise LedgerError(f"cannot request instance {name}: its state is {instance.state}")
        with self._writing(f"request instance {name}") as connection:
            if _state(connection, name) is not None:
                raise LedgerError(f"cannot request instance {name}: it was requested before")
            require_caps(connection, instance, caps=caps, exit_s=exit_s, now_s=now_s)
            connection.execute(
                insert(schema.instances).values(
                    instance_id=name,
                    provider=offer.provider,
                    created_at_s=instance.created_at_s,
                    **rows.instance_values(instance),
                )
            )
            connection.execute(
                insert(schema.reservations).values(
                    instance_id=name,
                    from_s=instance.created_at_s,
                    usd_per_hour=offer.usd_per_hour,
                    gpu_count=offer.gpu_count,
                )
            )
            self._add(connection, rows.requested_event(instance, now_s=now_s))

    def save(self, instance: Instance, *events: Event) -> None:
        """See `Ledger.save`."""
        name = instance.instance_id
        with self._writing(f"save instance {name}") as connection:
            state = _state(connection, name)
            if state is None:
                raise LedgerError(f"cannot save instance {name}: it was never requested")
            if state not in rows.LIVE_INSTANCE_STATES:
                raise LedgerError(
                    f"cannot save instance {name}: it has ended ({state}) and never changes again"
                )
            connection.execute(
                update(schema.instances)
                .where(schema.instances.c.instance_id == name)
                .values(**rows.instance_values(instance))
            )
            if instance.is_ended:
                connection.execute(
                    delete(schema.reservations).where(schema.reservations.c.instance_id == name)
                )
                spend = spend_of(instance)
                if spend is not None:
                    connection.execute(insert(schema.spends).values(**spend.model_dump()))
            else:
                # When the wall clock was set, the row's start moved with it.
                connection.execute(
                    update(schema.reservations)
                    .where(
                        schema.reservations.c.instance_id == name,
                        schema.reservations.c.from_s != instance.created_at_s,
                    )
                    .values(from_s=instance.created_at_s)
                )
            self._add(connection, *events)

    def live_instances(self) -> Sequence[Instance]:
        """See `Ledger.live_instances`."""
        query = (
            select(schema.instances.c.instance_id, schema.instances.c.body)
            .where(schema.instances.c.state.in_(rows.LIVE_INSTANCE_STATES))
            .order_by(schema.instances.c.created_at_s, schema.instances.c.instance_id)
        )
        return self._models(Instance, query, "read the live instances")

    def instance(self, instance_id: str) -> Instance | None:
        """See `Ledger.instance`."""
        query = select(schema.instances.c.instance_id, schema.instances.c.body).where(
            schema.instances.c.instance_id == instance_id
        )
        return next(iter(self._models(Instance, query, f"read instance {instance_id}")), None)

    def instances(self, *, limit: int = 1000) -> Sequence[Instance]:
        """See `Ledger.instances`."""
        query = (
            select(schema.instances.c.instance_id, schema.instances.c.body)
            .order_by(schema.instances.c.created_at_s.desc(), schema.instances.c.instance_id.desc())
            .limit(limit)
        )
        return self._models(Instance, query, "read the instances")

    def mark_joined(self, instance_id: str, *, now_s: float) -> bool:
        """See `Ledger.mark_joined`."""
        with self._writing(f"record the join of instance {instance_id}") as connection:
            if _state(connection, instance_id) is None:
                raise LedgerError(f"cannot record a join: instance '{instance_id}' is unknown")
            query = select(schema.joins.c.at_s).where(schema.joins.c.instance_id == instance_id)
            if connection.execute(query).first() is not None:
                return False
            connection.execute(insert(schema.joins).values(instance_id=instance_id, at_s=now_s))
            return True

    def spends(self, *, since_s: float = 0.0) -> Sequence[Spend]:
        """See `Ledger.spends`."""
        query = (
            select(schema.spends)
            .where(schema.spends.c.to_s > since_s)
            .order_by(schema.spends.c.to_s)
        )
        with self._store.reading("read the spends") as connection:
            return tuple(rows.spend_from(row) for row in connection.execute(query))

    def payments(self, *, now_s: float) -> Sequence[Payment]:
        """See `Ledger.payments`."""
        with self._store.reading("read the payments") as connection:
            return tuple(map(Payment._make, connection.execute(payments_of_month(now_s=now_s))))

    # --- history --------------------------------------------------------------------------

    def append(self, *events: Event) -> None:
        """See `Ledger.append`."""
        if events:
            with self._writing("append events") as connection:
                self._add(connection, *events)

    def events(
        self, *, after_seq: int = 0, limit: int = 1000, subject: str = ""
    ) -> Sequence[Event]:
        """See `Ledger.events`."""
        is_tail = after_seq <= 0
        query = select(schema.events).where(schema.events.c.seq > after_seq).limit(limit)
        query = query.order_by(schema.events.c.seq.desc() if is_tail else schema.events.c.seq)
        if subject:
            query = query.where(schema.events.c.subject == subject)
        with self._store.reading("read the events") as connection:
            found = [rows.event_from(row) for row in connection.execute(query)]
        return tuple(reversed(found) if is_tail else found)

    # --- switches and back-off ------------------------------------------------------------

    def failures(self) -> Sequence[OfferFailure]:
        """See `Ledger.failures`."""
        query = select(schema.failures.c.key, schema.failures.c.body).order_by(
            schema.failures.c.key
        )
        return self._models(OfferFailure, query, "read the offers' failures")

    def save_failure(self, failure: OfferFailure) -> None:
        """See `Ledger.save_failure`."""
        with self._writing(f"save the failure of offer {failure.key}") as connection:
            _put(connection, schema.failures, failure.key, {"body": rows.body_of(failure)})

    def clear_failure(self, key: str) -> None:
        """See `Ledger.clear_failure`."""
        with self._writing(f"clear the failure of {key}") as connection:
            connection.execute(delete(schema.failures).where(schema.failures.c.key == key))

    def mode(self) -> Mode:
        """See `Ledger.mode`."""
        found = self._models(Mode, select(schema.mode.c.id, schema.mode.c.body), "read the mode")
        return found[0] if found else Mode()

    def set_mode(self, mode: Mode) -> None:
        """See `Ledger.set_mode`."""
        with self._writing("save the mode") as connection:
            _put(connection, schema.mode, 1, {"body": rows.body_of(mode)})

    # --- jobs -----------------------------------------------------------------------------

    def job(self, job_id: str) -> Job | None:
        """See `Ledger.job`."""
        query = select(schema.jobs.c.job_id, schema.jobs.c.body).where(
            schema.jobs.c.job_id == job_id
        )
        return next(iter(self._models(Job, query, f"read job {job_id}")), None)

    def jobs(self, *, is_live_only: bool = False, limit: int | None = 1000) -> Sequence[Job]:
        """See `Ledger.jobs`."""
        query = select(schema.jobs.c.job_id, schema.jobs.c.body).limit(limit)
        if is_live_only:
            query = query.where(schema.jobs.c.state.in_(rows.LIVE_JOB_STATES))
            query = query.order_by(schema.jobs.c.created_at_s, schema.jobs.c.job_id)
        else:
            query = query.order_by(schema.jobs.c.created_at_s.desc(), schema.jobs.c.job_id.desc())
        return self._models(Job, query, "read the jobs")

    def job_counts(self) -> Mapping[JobState, int]:
        """See `Ledger.job_counts`."""
        query = select(schema.jobs.c.state, func.count()).group_by(schema.jobs.c.state)
        with self._store.reading("count the jobs") as connection:
            return {JobState(state): count for state, count in connection.execute(query)}

    def save_job(self, job: Job, *events: Event) -> None:
        """See `Ledger.save_job`."""
        with self._writing(f"save job {job.job_id}") as connection:
            _put(connection, schema.jobs, job.job_id, rows.job_values(job))
            self._add(connection, *events)

    def close(self) -> None:
        """See `Ledger.close`."""
        self._store.close()

    # --- inside ---------------------------------------------------------------------------

    @contextmanager
    def _writing(self, what: str) -> Iterator[Connection]:
        with self._store.writing(what) as connection:
            require_epoch(connection, self._epoch, is_locking=True)
            yield connection

    def _add(self, connection: Connection, *added: Event) -> None:
        if added:
            values = [rows.event_values(event, epoch=self._epoch) for event in added]
            connection.execute(insert(schema.events), values)

    def _models(
        self, kind: type[rows.ModelT], query: Select[tuple[Any, str]], what: str
    ) -> Sequence[rows.ModelT]:
        """Return the models of a query for (key, body)."""
        with self._store.reading(what) as connection:
            found = connection.execute(query).all()
        return tuple(rows.model_from(kind, body, subject=str(key)) for key, body in found)


def _state(connection: Connection, instance_id: str) -> str | None:
    query = select(schema.instances.c.state).where(schema.instances.c.instance_id == instance_id)
    return connection.execute(query).scalar_one_or_none()


def _put(connection: Connection, into: Table, key: str | int, values: rows.Values) -> None:
    """Insert or replace a row. Two steps are safe: only one transaction writes at a time."""
    [column] = into.primary_key.columns
    if connection.execute(update(into).where(column == key).values(**values)).rowcount == 0:
        connection.execute(insert(into).values(**{column.name: key}, **values))
