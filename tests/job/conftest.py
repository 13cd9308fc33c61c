"""A job's environment, and Ray's store in memory."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from hybrid.job import checkpoint, store
from hybrid.job.context import NOTES

ADDRESS = "head:1"
JOB = {"HYBRID_JOB_ID": "j-1", "HYBRID_ATTEMPT": "2", "HYBRID_CHECKPOINT_URL": "/saved/j-1"}


class Memory:
    """Notes by key; `is_away` while the head cannot be reached."""

    def __init__(self) -> None:
        self.notes: dict[str, bytes] = {}
        self.is_away = False
        self.get_count = 0

    def get(self, key: str) -> bytes | None:
        self.get_count += 1
        if self.is_away:
            raise ConnectionError("away")
        return self.notes.get(key)

    def put(self, key: str, value: bytes) -> None:
        if self.is_away:
            raise ConnectionError("away")
        self.notes[key] = value


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that knows of no job."""
    for name in (*JOB, NOTES, "HYBRID_RESUME_FROM", "RAY_ADDRESS", "HYBRID_GROUP_BUNDLE"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(checkpoint, "_memory", checkpoint._Memory())


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """The second attempt of a job, and the store that it reaches."""
    made = Memory()
    for name, value in (JOB | {"RAY_ADDRESS": ADDRESS}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(store._opened, ADDRESS, made)
    return made


@pytest.fixture
def handlers() -> Iterator[None]:
    """Give back the handlers that the wrapper takes."""
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    yield
    for number, handler in before:
        signal.signal(number, handler)
