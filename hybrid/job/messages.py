"""Notes between the controller and a job, kept in Ray's internal key-value store.

Standard library only: this runs inside jobs, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import NamedTuple

NAMESPACE = b"hybrid"
"""Of all keys, in Ray's store."""

LONGEST_URL = 2_000
_GARBAGE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


class Saved(NamedTuple):
    """A complete checkpoint that a job confirmed.

    Attributes:
        at_s: By the clock of the job's node, seconds since the epoch.
        step: The job's own count of its progress, if it has one.
    """

    url: str
    at_s: float
    step: int | None = None


class Ask(NamedTuple):
    """A request to save.

    Attributes:
        why: `suspend`, `move`, `preempt` or `leave`; `withdrawn`: it may go on.
        by_s: When it should have saved, by the controller's clock.
    """

    why: str
    by_s: float


def ask_key(job_id: str, attempt: int) -> str:
    """Return the key under which the controller asks an attempt to save."""
    return f"job:{job_id}:{attempt}:ask"


def saved_key(job_id: str, attempt: int) -> str:
    """Return the key under which an attempt confirms a checkpoint."""
    return f"job:{job_id}:{attempt}:saved"


def phase_key(job_id: str, attempt: int) -> str:
    """Return the key under which the wrapper says what it does."""
    return f"job:{job_id}:{attempt}:phase"


def encode(note: Mapping[str, object]) -> bytes:
    """Return a note as it is stored."""
    return json.dumps(note).encode()


def parse_saved(raw: bytes) -> Saved | None:
    """Return a confirmed checkpoint, or `None` for a note that is none: jobs write these."""
    try:
        found = json.loads(raw)
        url, step = found["url"], found.get("step")
        if not isinstance(url, str) or len(url) > LONGEST_URL:
            return None
        return Saved(url, _finite(found["at_s"]), None if step is None else int(step))
    except _GARBAGE:
        return None


def parse_ask(raw: bytes) -> Ask | None:
    """Return a request to save, or `None` for a note that is none."""
    try:
        found = json.loads(raw)
        return Ask(str(found["why"]), _finite(found["by_s"]))
    except _GARBAGE:
        return None


def _finite(value: object) -> float:
    number = float(value)  # type: ignore[arg-type]  # what it cannot take is garbage
    if not math.isfinite(number):
        raise ValueError("not a time")
    return number
