"""What a benchmark says: figures with targets, and the document that holds them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class BenchError(Exception):
    """A part could not be measured; the message says why."""


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes:
        name: Stable; what changes over time is compared by it.
        what: One sentence.
        value: As `what` says; `None` when there was nothing to measure.
        target: The value must not be larger; `None` when there is none.
        details: What the value was made from.
    """

    name: str
    what: str
    value: float | None
    unit: str
    target: float | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; `None` when there is none, or no value."""
        if self.target is None or self.value is None:
            return None
        return self.value <= self.target

    def as_json(self) -> dict[str, object]:
        """Return the form that is printed."""
        return {
            "name": self.name,
            "what": self.what,
            "value": None if self.value is None else shortened(self.value),
            "unit": self.unit,
            "target": self.target,
            "is_met": self.is_met,
            "details": dict(self.details),
        }


class Times(NamedTuple):
    """How long something took, run after run, seconds."""

    wall_s: Sequence[float]
    cpu_s: Sequence[float]

    @property
    def median_ms(self) -> float:
        """Median of the wall times, milliseconds."""
        return statistics.median(self.wall_s) * 1e3

    def details(self) -> dict[str, object]:
        """Return best, median and worst, and processor time, which other work disturbs less."""
        return {
            "best_ms": shortened(min(self.wall_s) * 1e3),
            "median_ms": shortened(self.median_ms),
            "worst_ms": shortened(max(self.wall_s) * 1e3),
            "cpu_median_ms": shortened(statistics.median(self.cpu_s) * 1e3),
            "runs": len(self.wall_s),
        }


def timed(call: Callable[[], object], *, runs: int) -> Times:
    """Call `runs` times, after one call that does not count."""
    call()
    wall_s, cpu_s = [], []
    for _ in range(runs):
        cpu, wall = time.process_time(), time.perf_counter()
        call()
        wall_s.append(time.perf_counter() - wall)
        cpu_s.append(time.process_time() - cpu)
    return Times(wall_s, cpu_s)


def shortened(value: float) -> float:
    """Return `value` with four digits that count; more would be noise."""
    return float(f"{value:.4g}")


def document(
    figures: Sequence[Figure], failures: Mapping[str, str], facts: Mapping[str, object]
) -> dict[str, object]:
    """Return what is printed.

    Args:
        figures: In order.
        failures: Why a part could not be measured, by its name.
        facts: When, where and on what it was measured.
    """
    return {
        **facts,
        "figures": [figure.as_json() for figure in figures],
        "met": sorted(f.name for f in figures if f.is_met is True),
        "missed": sorted(f.name for f in figures if f.is_met is False),
        "failures": dict(failures),
    }
