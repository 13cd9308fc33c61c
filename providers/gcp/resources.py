"""Instances and operations as the rest of the adapter knows them, without the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from providers.gcp.errors import Failure
from providers.gcp.naming import Place


@dataclass(frozen=True)
class Operation:
    """Work that Google accepted.

    Attributes:
        failures: Why it came to nothing; empty while it runs and when it worked.
        asked_at_s: When it was asked for, by Google's clock.
    """

    project: str
    zone: str
    name: str
    is_done: bool
    failures: tuple[Failure, ...] = ()
    asked_at_s: float | None = None


@dataclass(frozen=True)
class Machine:
    """An instance as Google shows it.

    Attributes:
        ends_at_s: When Google deletes it by itself.
    """

    place: Place
    status: str
    status_message: str
    labels: Mapping[str, str]
    metadata: Mapping[str, str]
    metadata_fingerprint: str
    created_at_s: float
    ends_at_s: float | None


def operation_of(where: Place | Operation, answer: Any) -> Operation:
    """Return an operation of the SDK; what its errors say counts, not what the HTTP fields do."""
    status = int(answer.http_error_status_code)
    failures = tuple(Failure(e.code, e.message, status) for e in answer.error.errors)
    if not failures and status:
        failures = (Failure("", answer.http_error_message, status),)
    return Operation(
        project=where.project,
        zone=where.zone,
        name=answer.name,
        is_done=answer.status == type(answer).Status.DONE,
        failures=failures,
        asked_at_s=_at_s(answer.insert_time) if answer.insert_time else None,
    )


def machine_of(instance: Any) -> Machine:
    """Return an instance of the SDK. Raises `ValueError`: it makes no sense."""
    created_at_s = _at_s(instance.creation_timestamp)
    return Machine(
        place=_place(instance.self_link),
        status=instance.status,
        status_message=instance.status_message,
        labels=dict(instance.labels),
        metadata={item.key: item.value for item in instance.metadata.items},
        metadata_fingerprint=instance.metadata.fingerprint,
        created_at_s=created_at_s,
        ends_at_s=_ends_at_s(instance, created_at_s),
    )


def _place(link: str) -> Place:
    """Return where an instance is. Raises `ValueError`."""
    place = Place.of("projects/" + link.partition("/projects/")[2])
    if place is None:
        raise ValueError(f"{link!r} is not the address of an instance")
    return place


def _ends_at_s(instance: Any, created_at_s: float) -> float | None:
    stamp = instance.resource_status.scheduling.termination_timestamp
    life_s = int(instance.scheduling.max_run_duration.seconds)
    if stamp:
        return _at_s(stamp)
    return created_at_s + life_s if life_s else None


def _at_s(stamp: str) -> float:
    """Return the instant of an RFC 3339 text. Raises `ValueError`."""
    return datetime.fromisoformat(stamp).timestamp()
