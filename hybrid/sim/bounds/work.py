"""The jobs of a trace as arrays, and how much of them has been asked for by a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hybrid.sim.traces.trace import Trace

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Jobs as columns; all of shape (J,).

    Attributes:
        submit_s: When each is asked for.
        duration_s: How long each runs.
        gpus: GPUs that each holds.
    """

    submit_s: Floats
    duration_s: Floats
    gpus: Floats

    @classmethod
    def of(cls, trace: Trace) -> Work:
        """Return the jobs of a trace, in its order."""
        return cls(
            np.array([job.submit_s for job in trace.jobs], dtype=np.float64),
            np.array([job.duration_s for job in trace.jobs], dtype=np.float64),
            np.array([job.gpus for job in trace.jobs], dtype=np.float64),
        )

    @property
    def count(self) -> int:
        """How many jobs."""
        return len(self.submit_s)

    @property
    def gpu_s(self) -> Floats:
        """The work of each job, in GPU-seconds, shape (J,)."""
        return self.gpus * self.duration_s

    @property
    def total_gpu_s(self) -> float:
        """All work, in GPU-seconds."""
        return float(self.gpu_s.sum())

    @property
    def end_s(self) -> float:
        """When the last one ends if each starts at once; 0 without jobs."""
        return float((self.submit_s + self.duration_s).max(initial=0.0))


def done_by(at_s: Floats, start_s: Floats, length_s: Floats, rate: Floats) -> Floats:
    """Return `sum(rate * clip(at - start, 0, length))` for each time, in O((J + T) log J).

    Args:
        at_s: Times, shape (T,).
        start_s: When each job begins, shape (J,).
        length_s: How long it goes on, shape (J,).
        rate: What it does in a second, shape (J,).

    Returns:
        What is done by each time, shape (T,).
    """
    return _ramps(at_s, start_s, rate) - _ramps(at_s, start_s + length_s, rate)


def _ramps(at_s: Floats, from_s: Floats, rate: Floats) -> Floats:
    """Return the sum of lines that rise with `rate` from `from_s` on, at each time."""
    order = np.argsort(from_s, kind="stable")
    slope = np.concatenate([[0.0], np.cumsum(rate[order])])
    offset = np.concatenate([[0.0], np.cumsum((rate * from_s)[order])])
    begun = np.searchsorted(from_s[order], at_s, side="right")
    result: Floats = slope[begun] * at_s - offset[begun]
    return result


def edges(end_s: float, step_s: float) -> Floats:
    """Return the edges of slots from 0 to `end_s` at the least, shape (K + 1,)."""
    count = int(np.ceil(end_s / step_s)) + 1
    return np.arange(count + 1, dtype=np.float64) * step_s
