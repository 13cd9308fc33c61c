"""What is looked at in a soak, and whether any of it grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

SAMPLE_EVERY_S = 5.0
WARM_UP_RATIO = 0.25
LEAST_SAMPLES = 10
LIMITS: Mapping[str, tuple[float, float]] = {
    # Growth from the end of the warm-up to the end: (part of the first value, and so much more).
    "memory_mib": (0.05, 4.0),
    "thread_count": (0.0, 2.0),
    "fd_count": (0.0, 4.0),
    "ledger_bytes_per_event": (0.10, 0.0),
}


@dataclass
class Sample:
    """What the process was at one moment.

    Attributes:
        at_s: Since the start.
        tick_ms: Median of the ticks since the last sample; 0 when it is not known.
    """

    at_s: float
    tick_count: int
    memory_mib: float
    thread_count: int
    fd_count: int
    ledger_bytes: int
    event_count: int
    instance_count: int
    ledger_bytes_per_event: float
    tick_ms: float


@dataclass(frozen=True)
class Check:
    """Whether one thing grew.

    Attributes:
        first: Median of the samples right after the warm-up.
        last: Median of the last samples.
        limit: What `last` may be at most.
    """

    name: str
    first: float
    last: float
    limit: float

    @property
    def is_ok(self) -> bool:
        """Return whether it stayed within its limit."""
        return self.last <= self.limit

    def as_json(self) -> dict[str, Any]:
        """Return the form that is printed."""
        return {**asdict(self), "is_ok": self.is_ok}


def checks(samples: Sequence[Sample], *, warm_instances: int) -> list[Check]:
    """Return how the end compares with the end of the warm-up; nothing when it was too short.

    Args:
        samples: In order.
        warm_instances: The warm-up lasts at least until so many have been rented.
    """
    warm = [s for s in samples if s.instance_count >= warm_instances]
    warm = warm[-int(len(samples) * (1 - WARM_UP_RATIO)) :]
    if len(warm) < LEAST_SAMPLES:
        return []
    part = max(1, len(warm) // 5)
    found = []
    for name, (ratio, more) in LIMITS.items():
        first = median(getattr(sample, name) for sample in warm[:part])
        last = median(getattr(sample, name) for sample in warm[-part:])
        found.append(Check(name, first, last, round(first * (1 + ratio) + more, 1)))
    return found


def some(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Return about twenty of them, for a person to read."""
    return [asdict(sample) for sample in samples[:: max(1, len(samples) // 20)]]


def own_mib(pid: int | str = "self") -> float:
    """Return the memory that is a process's alone: no files, no shared pages."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("RssAnon:"))
    return round(int(line.split()[1]) / 1024, 2)


def fd_count(pid: int | str = "self") -> int:
    """Return how many file descriptors a process has."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def ledger_bytes(folder: Path) -> int:
    """Return the size of a SQLite ledger with its logs."""
    return sum(path.stat().st_size for path in folder.glob("ledger.db*"))
