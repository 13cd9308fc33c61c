"""Between the frozen models and the rows that hold them; pure."""

from __future__ import annotations

import json
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationError
from sqlalchemy import Row

from hybrid.core.errors import LedgerError
from hybrid.core.models import Event, Instance, InstanceState, Job, JobState, Model, Spend

ModelT = TypeVar("ModelT", bound=Model)
Values: TypeAlias = dict[str, Any]

LIVE_INSTANCE_STATES = tuple(
    state.value
    for state in InstanceState
    if state not in (InstanceState.TERMINATED, InstanceState.FAILED)
)
LIVE_JOB_STATES = tuple(state.value for state in JobState if not state.is_ended)


def body_of(model: Model, *, only: set[str] | None = None) -> str:
    """Return a model as JSON text that `model_from` can always read again.

    Not `model_dump_json`: that writes an infinite number as `null`, which no float field takes
    back, so one such fact would make the row unreadable for ever. It also raises on a stray
    byte of a program's output (a lone surrogate), which becomes `?` here.
    """
    values = model.model_dump(mode="json", include=only, fallback=str)
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "replace").decode()


def model_from(kind: type[ModelT], body: str, *, subject: str) -> ModelT:
    """Return the model kept in `body`.

    Raises:
        LedgerError: The row was damaged, or written by a newer program.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as err:
        raise LedgerError(
            f"the ledger's row of {kind.__name__.lower()} '{subject}' cannot be read: "
            f"{err.errors()[0]['msg']}; it is damaged or a newer hybrid wrote it: use that version"
        ) from err


def instance_values(instance: Instance) -> Values:
    """Return the columns of an instance that may change."""
    return {"state": instance.state.value, "body": body_of(instance)}


def job_values(job: Job) -> Values:
    """Return the columns of a job, its id left out."""
    return {"state": job.state.value, "created_at_s": job.created_at_s, "body": body_of(job)}


def event_values(event: Event, *, epoch: int) -> Values:
    """Return the columns of an event; `seq` is given by the database."""
    return {
        "at_s": event.at_s,
        "epoch": epoch,
        "kind": event.kind,
        "subject": event.subject,
        "body": body_of(event, only={"message", "facts"}),
    }


def event_from(row: Row[Any]) -> Event:
    """Return the event of a row."""
    kept = json.loads(row.body)
    return Event(
        seq=row.seq,
        at_s=row.at_s,
        epoch=row.epoch,
        kind=row.kind,
        subject=row.subject,
        message=kept["message"],
        facts=kept["facts"],
    )


def spend_from(row: Row[Any]) -> Spend:
    """Return the spend of a row."""
    return Spend.model_validate(row._asdict())


def requested_event(instance: Instance, *, now_s: float) -> Event:
    """Return the line of history that an intent leaves."""
    offer = instance.offer
    return Event(
        at_s=now_s,
        epoch=instance.spec.epoch,
        kind="instance_requested",
        subject=instance.instance_id,
        message=instance.reason.message,
        facts={
            "offer_id": offer.offer_id,
            "provider": offer.provider,
            "gpu_count": offer.gpu_count,
            "usd_per_hour": offer.usd_per_hour,
            "reason_code": instance.reason.code,
            **{f"reason_{key}": value for key, value in instance.reason.facts.items()},
        },
    )
