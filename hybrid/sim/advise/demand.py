"""How many GPUs are needed for how long, if every job starts when it is asked for."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from hybrid.sim.traces.trace import Trace


@dataclass(frozen=True)
class DemandCurve:
    """Which numbers of GPUs are needed, and how long each.

    Attributes:
        period_s: The time it stands for: that in which jobs were asked for.
        held_s_by_gpus: Seconds in which exactly so many are needed; none is left out.
    """

    period_s: float
    held_s_by_gpus: dict[int, float]

    @classmethod
    def of(cls, trace: Trace, period_s: float) -> DemandCurve:
        """Return the curve of a trace.

        Args:
            trace: The jobs.
            period_s: The time in which they were asked for. What runs on after it counts too, so
                no work is lost.
        """
        changes: dict[float, int] = defaultdict(int)
        for job in trace.jobs:
            changes[job.submit_s] += job.gpus
            changes[job.submit_s + job.duration_s] -= job.gpus
        held: dict[int, list[float]] = defaultdict(list)
        gpus, since_s = 0, 0.0
        for at_s in sorted(changes):
            if gpus:
                held[gpus].append(at_s - since_s)
            gpus, since_s = gpus + changes[at_s], at_s
        return cls(period_s, {level: math.fsum(held[level]) for level in sorted(held)})

    @property
    def peak_gpus(self) -> int:
        """The most that are needed at once."""
        return max(self.held_s_by_gpus, default=0)

    @property
    def mean_gpus(self) -> float:
        """How many are needed on average."""
        return self.rented_gpu_s(0) / self.period_s

    def rented_gpu_s(self, own_gpus: int) -> float:
        """Return the GPU-seconds beyond what is owned."""
        return math.fsum(
            (level - own_gpus) * held_s
            for level, held_s in self.held_s_by_gpus.items()
            if level > own_gpus
        )

    def needed_ratio(self, gpus: int) -> float:
        """Return the share of the time in which so many are needed, or more; at most 1."""
        held_s = math.fsum(held for level, held in self.held_s_by_gpus.items() if level >= gpus)
        return min(1.0, held_s / self.period_s)

    def worth_owning(self, break_even_ratio: float) -> int:
        """Return how many GPUs are each needed for more of the time than it takes to pay."""
        worth = 0
        for level in self.held_s_by_gpus:
            if self.needed_ratio(level) > break_even_ratio:
                worth = level
        return worth
