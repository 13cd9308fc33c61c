"""What a report is about: the runs, which of them is ours, and what it is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybrid.core.errors import ConfigError
from hybrid.core.policy.jobs.params import PROFILES
from hybrid.sim.advise.hardware import OwnHardware
from hybrid.sim.params import SimParams
from hybrid.sim.report.lang import Lang, Words
from hybrid.sim.results import SimResult

if TYPE_CHECKING:
    from hybrid.sim.bounds.report import BoundsView

TARGET_RATIO = 0.995
"""A policy keeps its promises when so much of the work is in time, by jobs and by GPU-time."""


@dataclass(frozen=True)
class Report:
    """One or several runs of one trace, the cheapest first.

    Attributes:
        title: What the page is called.
        runs: By name: the policy's without its values, where no other has the same; runs of one
            policy that differ in the seed have it in their name.
        ours: Name of the run that the headline is about.
        base: Name of the one it is compared with: the cheapest of the others that keeps its
            promises, else the cheapest; `None` when there is no other.
    """

    title: str
    runs: dict[str, SimResult]
    ours: str
    base: str | None
    own: OwnHardware = field(default_factory=OwnHardware)
    bounds: BoundsView | None = None
    params: SimParams | None = None
    command: str = ""
    words: Words = field(default_factory=lambda: Words("en"))

    @classmethod
    def of(
        cls,
        results: Sequence[SimResult],
        *,
        title: str,
        bounds: BoundsView | None = None,
        params: SimParams | None = None,
        own: OwnHardware | None = None,
        command: str = "",
        lang: Lang = "en",
    ) -> Report:
        """Return a report of results that belong together.

        Raises:
            ConfigError: There are none, or they are of different traces or sites.
        """
        if not results:
            raise ConfigError("there is no result to report; run `hybrid sim run` first")
        sites = {(result.trace, result.gpus) for result in results}
        if len(sites) > 1:
            listed = "; ".join(f"{trace} with {gpus} GPUs" for trace, gpus in sorted(sites))
            raise ConfigError(
                f"one report is about one trace and one number of GPUs at home, and these "
                f"results are of {listed}: write a report for each"
            )
        named = _named(results)
        ours = next((name for name, run in named.items() if is_ours(run)), next(iter(named)))
        runs = dict(sorted(named.items(), key=lambda item: (item[1].usd, item[0])))
        return cls(
            title=title,
            runs=runs,
            ours=ours,
            base=_base(runs, ours),
            own=own or OwnHardware(),
            bounds=bounds,
            params=params,
            command=command,
            words=Words(lang),
        )

    @property
    def run(self) -> SimResult:
        """The run that the headline is about."""
        return self.runs[self.ours]

    @property
    def hours(self) -> float | None:
        """How long the runs took, on their own clock; `None` without their course."""
        ends_s = [run.series[-1].at_s for run in self.runs.values() if run.series]
        return max(ends_s) / 3_600 if ends_s and max(ends_s) > 0 else None

    @property
    def home_usd(self) -> float | None:
        """What the GPUs at home cost meanwhile, used or not."""
        hours = self.hours
        return None if hours is None else hours * self.run.gpus * self.own.usd_per_gpu_hour

    def bound_usd(self, name: str) -> float | None:
        """Return a bound by its name, `None` where it was not given."""
        bounds = self.bounds.bounds if self.bounds else ()
        return next((bound.usd for bound in bounds if bound.name == name), None)


def is_ours(run: SimResult) -> bool:
    """Return whether a run is of a profile of the product's own policy."""
    return run.policy in PROFILES


def is_kept(run: SimResult) -> bool:
    """Return whether enough of the work was in time."""
    kept = run.promises
    return min(kept.start_by_jobs, kept.delay_by_gpu_time) >= TARGET_RATIO


def _base(runs: dict[str, SimResult], ours: str) -> str | None:
    """Return the fairest opponent; other profiles of ours are none."""
    others = [name for name, run in runs.items() if name != ours and not is_ours(run)]
    kept = [name for name in others if is_kept(runs[name])]
    return next(iter(kept or others), None)


def _named(results: Sequence[SimResult]) -> dict[str, SimResult]:
    count = Counter(run.policy for run in results)
    heads = Counter(_head(run.policy) for run in results)
    named: dict[str, SimResult] = {}
    for run in results:
        name = _head(run.policy) if heads[_head(run.policy)] == 1 else run.policy
        if count[run.policy] > 1:
            name = f"{name} (seed {run.seed})"
        if name in named:
            raise ConfigError(f"{name} is there twice: give each run a name or a seed of its own")
        named[name] = run
    return named


def _head(policy: str) -> str:
    """Return a policy's name without the values it was tuned to."""
    return policy.partition("(")[0].strip() or policy
