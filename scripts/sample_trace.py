#!/usr/bin/env python3
"""Writes the synthetic trace that ships with the program: hybrid/sim/traces/sample.csv.gz.

Made up, from a seed, and of nobody's work. It has the shape that makes bursting dear in the public
traces: most jobs are short, 4 % run for more than a day and are two thirds of the work, demand
follows days and weeks, and three times a team sends a campaign at once.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from hybrid.sim.traces.csvfile import write_csv  # noqa: E402 (after the path is set)
from hybrid.sim.traces.trace import DAY_S, Trace, TraceJob  # noqa: E402

TARGET = ROOT / "hybrid" / "sim" / "traces" / "sample.csv.gz"
SEED = 20_26
DAYS = 28
JOBS_PER_DAY = 84
LONG_SHARE = 0.03
SIZES = ((1, 0.70), (2, 0.12), (4, 0.10), (8, 0.07), (16, 0.01))
TEAMS = ("vision", "speech", "language", "robots", "search", "course")
CAMPAIGNS = ((6.4, "language"), (13.6, "vision"), (22.5, "robots"))
"""Day and team: 18 long jobs within two hours."""
CHECKPOINTABLE_SHARE = 0.8


def made(seed: int = SEED) -> Trace:
    """Return the trace of a seed."""
    draw = random.Random(seed)
    rows = sorted([*_days(draw), *_campaigns(draw)])
    jobs = (
        TraceJob(
            f"job-{place:04}",
            submit_s,
            duration_s,
            gpus,
            user=team,
            is_checkpointable=draw.uniform(0, 1) < CHECKPOINTABLE_SHARE,
            checkpoint_gb=float(draw.choices((2, 10, 40), (60, 30, 10))[0] * gpus),
        )
        for place, (submit_s, duration_s, gpus, team) in enumerate(rows, start=1)
    )
    return Trace.of("sample", jobs)


def _days(draw: random.Random) -> Iterator[tuple[float, float, int, str]]:
    at_s = 0.0
    busiest = 2.2 * JOBS_PER_DAY / DAY_S
    while (at_s := at_s + draw.expovariate(busiest)) < DAYS * DAY_S:
        if draw.uniform(0, 2.2) > _rhythm(at_s):
            continue
        is_long = draw.uniform(0, 1) < LONG_SHARE
        yield (
            float(round(at_s)),
            _long_s(draw) if is_long else _short_s(draw),
            draw.choices([size for size, _ in SIZES], [share for _, share in SIZES])[0],
            draw.choice(TEAMS),
        )


def _campaigns(draw: random.Random) -> Iterator[tuple[float, float, int, str]]:
    for day, team in CAMPAIGNS:
        for _ in range(18):
            at_s = day * DAY_S + draw.uniform(0, 7_200)
            length_s = draw.uniform(6, 40) * 3_600
            yield float(round(at_s)), float(round(length_s)), draw.choice((1, 2, 2, 4)), team


def _rhythm(at_s: float) -> float:
    """Return how busy a time is: 1 on average, little at night and at weekends."""
    hour, weekday = at_s % DAY_S / 3_600, int(at_s // DAY_S) % 7
    day = 1.0 + 0.8 * math.sin((hour - 9) / 24 * 2 * math.pi)
    return day * (0.45 if weekday >= 5 else 1.22)


def _short_s(draw: random.Random) -> float:
    return float(round(min(DAY_S, max(20.0, draw.lognormvariate(math.log(1_100), 1.5)))))


def _long_s(draw: random.Random) -> float:
    """Return more than a day, with a tail of weeks (Pareto, cut at twelve days)."""
    return float(round(min(12.0, draw.paretovariate(1.1)) * DAY_S))


if __name__ == "__main__":
    write_csv(made(), TARGET)
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size} bytes")
