"""What the benchmark runs: traces, sizes of the site, and what is asked of the policy there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from hybrid.sim.params import SimParams
from hybrid.sim.traces.opening import SAMPLE, open_jobs
from hybrid.sim.traces.trace import Trace

_PHILLY_DAYS = (24.0, 84.0)
_VC_DAYS = (18.0, 98.0)
_VC_USERS = ("ee9e8c", "7f04ca")
_ALL = ("thrifty", "balanced", "fast")


@dataclass(frozen=True)
class Case:
    """One trace on one site.

    Attributes:
        name: What the table calls it.
        trace: As `--trace` takes it.
        days: First day, and the day after the last; empty for the whole trace.
        users: Only their jobs; empty for everybody's.
        share: Share of the jobs that can be checkpointed; `None` leaves it to the trace.
        late_share: What is promised beside the longest wait, in shares of the run time.
        profiles: Which of the product's profiles are run.
        baselines_of: The case whose baselines this one is compared with, where they cannot
            differ: none of them knows of checkpoints or of lateness. Its own when empty.
        most_usd: What a profile may cost, by profile: the project's own targets.
    """

    name: str
    trace: str
    gpus: int
    days: tuple[float, float] | tuple[()] = ()
    users: tuple[str, ...] = ()
    share: float | None = None
    late_share: float = 0.02
    profiles: tuple[str, ...] = _ALL
    baselines_of: str = ""
    most_usd: Mapping[str, float] = field(default_factory=dict)

    def params(self, seed: int) -> SimParams:
        """Return the simulated site."""
        return SimParams(gpus=self.gpus, late_share=self.late_share, seed=seed)

    def load(self, folder: Path | None) -> Trace:
        """Return its jobs.

        Args:
            folder: `HYBRID_TRACES`.

        Raises:
            TraceError: They are not here.
        """
        trace = _loaded(self.trace, folder)
        if self.days:
            trace = trace.window(*self.days)
        if self.users:
            users = frozenset(self.users)
            trace = trace.only(lambda job: job.user in users)
        # The same jobs for each seed: a seed draws boots and failures only.
        return trace if self.share is None else trace.with_share(self.share, 0)


@lru_cache(maxsize=2)
def _loaded(name: str, folder: Path | None) -> Trace:
    return open_jobs(name, folder)


SAMPLE_CASE = Case("sample-24", SAMPLE, 24)

CASES: tuple[Case, ...] = (
    Case(
        "philly-640",
        "philly",
        640,
        days=_PHILLY_DAYS,
        most_usd={"thrifty": 75_000.0, "balanced": 80_000.0, "fast": 82_000.0},
    ),
    Case("philly-512", "philly", 512, days=_PHILLY_DAYS, most_usd={"balanced": 306_000.0}),
    Case("philly-768", "philly", 768, days=_PHILLY_DAYS),
    Case(
        "philly-vc-192",
        "philly",
        192,
        days=_VC_DAYS,
        users=_VC_USERS,
        most_usd={"balanced": 300_000.0},
    ),
    Case(
        "philly-640-half",
        "philly",
        640,
        days=_PHILLY_DAYS,
        share=0.5,
        profiles=("balanced",),
        baselines_of="philly-640",
        most_usd={"balanced": 105_000.0},
    ),
    Case(
        "philly-640-none",
        "philly",
        640,
        days=_PHILLY_DAYS,
        share=0.0,
        profiles=("balanced",),
        baselines_of="philly-640",
    ),
    Case(
        "philly-640-strict",
        "philly",
        640,
        days=_PHILLY_DAYS,
        late_share=0.0,
        profiles=("balanced",),
        baselines_of="philly-640",
        most_usd={"balanced": 97_000.0},
    ),
    SAMPLE_CASE,
)
"""The full benchmark. `half` and `none` of the jobs checkpointable; `strict`: no late share."""

QUICK: tuple[str, ...] = ("sample-24", "philly-vc-192")
"""The small subset."""
