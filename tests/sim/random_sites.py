"""Small sites with random loads: steady, daily and in bursts, from a third to three times full."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from hybrid.sim.traces.trace import DAY_S, Trace, TraceJob

_SIZES = ((1,), (8,), (1, 2, 4, 8), (1, 1, 1, 2, 4, 8), (4, 8), (1, 2), (3, 5), (2, 4))


@dataclass(frozen=True)
class RandomSite:
    """One to four nodes of 8 GPUs, and what is asked of them.

    Attributes:
        share: Share of the jobs that can be stopped.
    """

    gpus: int
    share: float
    trace: Trace

    @classmethod
    def of(cls, seed: int, *, most_jobs: int = 120) -> RandomSite:
        """Return the site of a seed."""
        draw = random.Random(seed)
        gpus = 8 * draw.randint(1, 4)
        load = draw.choice((0.3, 0.6, 0.8, 0.9, 1.0, 1.1, 1.3, 1.6, 2.0, 3.0))
        share = (0.0, 0.5, 1.0)[seed % 3]
        sizes = draw.choice(_SIZES)
        mean_s = draw.choice((900.0, 3_600.0, 7_200.0, 14_400.0, 36_000.0))
        sigma = draw.choice((0.3, 1.0, 1.8))
        per_s = load * gpus * len(sizes) / (sum(sizes) * mean_s)
        count = min(most_jobs, max(10, round(8 * DAY_S * per_s)))
        at_s = _times(draw, count, count / per_s)
        jobs = [
            TraceJob(
                job_id=f"j{number:04d}",
                submit_s=round(submit_s, 1),
                duration_s=_length_s(draw, mean_s, sigma),
                gpus=draw.choice(sizes),
                is_checkpointable=draw.random() < share,
            )
            for number, submit_s in enumerate(sorted(at_s))
        ]
        return cls(gpus, share, Trace.of(f"random site {seed}, load {load}", jobs))


def _times(draw: random.Random, count: int, horizon_s: float) -> list[float]:
    kind = draw.choice(("steady", "daily", "bursts"))
    if kind == "steady":
        return [draw.uniform(0, horizon_s) for _ in range(count)]
    if kind == "bursts":
        begins = [draw.uniform(0, horizon_s) for _ in range(max(1, count // 15))]
        return [draw.choice(begins) + draw.expovariate(1 / 600) for _ in range(count)]
    found: list[float] = []
    while len(found) < count:
        at_s = draw.uniform(0, horizon_s)
        is_day = 9 <= (at_s / 3_600) % 24 < 17
        if is_day or draw.random() < 0.25:
            found.append(at_s)
    return found


def _length_s(draw: random.Random, mean_s: float, sigma: float) -> float:
    drawn_s = draw.lognormvariate(math.log(mean_s) - sigma**2 / 2, sigma)
    return round(max(30.0, min(20 * mean_s, drawn_s)), 1)
