"""What to own and what to rent: the cost of each size of one's own cluster, and the cheapest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hybrid.core.models import Model
from hybrid.core.policy.jobs.params import ProfileName
from hybrid.core.views import API_VERSION
from hybrid.sim.advise.demand import DemandCurve
from hybrid.sim.advise.hardware import HOURS_PER_YEAR, OwnHardware
from hybrid.sim.params import SimParams
from hybrid.sim.policies import Reservoir
from hybrid.sim.run import simulate
from hybrid.sim.traces.trace import DAY_S, Trace

PROMISE_RATIO = 0.995
_CURVE_POINTS = 80
_AROUND = (0.8, 1.0, 1.25)
_YEAR_S = HOURS_PER_YEAR * 3_600

OnRun = Callable[[int, int], None]
"""Is told how many simulated runs are done, and of how many."""


class AdvicePoint(Model):
    """One size of one's own cluster, for a year.

    Attributes:
        own_gpus: GPUs at home.
        own_usd, rented_usd, total_usd: Money per year.
        rented_gpu_h: Rented GPU-hours per year.
        is_simulated: By a run of the policy; else every job starts at once, and rented GPUs are
            exact, ready at once and moved for nothing.
        is_kept: Whether enough of the work was in time; `null` without a run.
        wait_p95_s: 95 of 100 jobs waited less; `null` without a run.
        home_busy_ratio: Share of the time at home that had work; `null` without a run, or a home.
    """

    own_gpus: int
    own_usd: float
    rented_usd: float
    total_usd: float
    rented_gpu_h: float
    is_simulated: bool = False
    is_kept: bool | None = None
    wait_p95_s: float | None = None
    home_busy_ratio: float | None = None


class AdviceView(Model):
    """What to own and what to rent. All money is in US dollars.

    Attributes:
        source: The trace, or the description, that it is about.
        days: How long that was; a year is taken to go on like it.
        jobs: How many jobs it has.
        checkpointable_ratio: Share of them that can be stopped and continued elsewhere.
        mean_gpus, peak_gpus: Needed on average and at most, if every job started at once.
        own_usd_per_gpu_year: Of a GPU at home, by what it is for.
        own_usd_per_gpu_hour: The same in all, for each hour, used or not.
        rented_usd_per_gpu_hour: Of a rented GPU.
        break_even_ratio: A GPU of one's own pays when it is needed for more of the time than
            this; above 1 it never does.
        policy: Which profile was simulated; `null` when none was.
        best: The cheapest that keeps its promises.
        without_checkpoints_usd: Total per year at that size if no job could be stopped and
            continued elsewhere; `null` when that was not simulated.
        points: The estimate for every size, the smallest first.
        simulated: What was simulated, the smallest first.
        own: The prices.
    """

    api_version: int = API_VERSION
    source: str
    days: float
    jobs: int
    checkpointable_ratio: float
    mean_gpus: float
    peak_gpus: int
    own_usd_per_gpu_year: dict[str, float]
    own_usd_per_gpu_hour: float
    rented_usd_per_gpu_hour: float
    break_even_ratio: float
    policy: str | None
    best: AdvicePoint
    without_checkpoints_usd: float | None
    points: tuple[AdvicePoint, ...]
    simulated: tuple[AdvicePoint, ...]
    own: OwnHardware


class Case(Model):
    """What advice is asked about.

    Attributes:
        own: Prices at home.
        site: The rest: the price of the cloud, promises, boots. Its `gpus` does not matter.
        policy: The profile to simulate; `None` only estimates.
    """

    own: OwnHardware
    site: SimParams
    policy: ProfileName | None


def advise(
    trace: Trace, case: Case, *, period_s: float | None = None, on_run: OnRun | None = None
) -> AdviceView:
    """Return what to own and what to rent for a trace.

    Args:
        trace: The jobs.
        case: Prices and promises.
        period_s: The time that the trace stands for; else that in which jobs were asked for.
        on_run: Is told how far it is.

    Raises:
        ValueError: The trace is too short to say anything about a year.
    """
    period_s = period_s or max((job.submit_s for job in trace.jobs), default=0.0)
    if period_s < DAY_S:
        raise ValueError(
            f"trace {trace.name} asks for work over {period_s / 3_600:.1f} hours only; give one "
            "of a day or more, best of whole weeks"
        )
    curve = DemandCurve.of(trace, period_s)
    asked = _Asked(trace, case, curve)
    points = tuple(asked.estimated(gpus) for gpus in asked.sizes())
    simulated = tuple(asked.simulated(on_run)) if case.policy is not None else ()
    kept = [point for point in simulated if point.is_kept]
    best = min(kept or simulated or points, key=lambda point: (point.total_usd, point.own_gpus))
    can_stop = sum(job.is_checkpointable for job in trace.jobs) / len(trace.jobs)
    without = None
    if simulated and can_stop > 0:
        without = asked.run(best.own_gpus, trace.with_share(0.0, 0)).total_usd
    return AdviceView(
        source=trace.name,
        days=period_s / DAY_S,
        jobs=len(trace.jobs),
        checkpointable_ratio=can_stop,
        mean_gpus=curve.mean_gpus,
        peak_gpus=curve.peak_gpus,
        own_usd_per_gpu_year=case.own.parts(),
        own_usd_per_gpu_hour=case.own.usd_per_gpu_hour,
        rented_usd_per_gpu_hour=case.site.usd_per_gpu_hour,
        break_even_ratio=asked.break_even_ratio,
        policy=case.policy,
        best=best,
        without_checkpoints_usd=without,
        points=points,
        simulated=simulated,
        own=case.own,
    )


class _Asked:
    """One question, and what it takes to answer it for one size."""

    def __init__(self, trace: Trace, case: Case, curve: DemandCurve) -> None:
        self._trace = trace
        self._case = case
        self._curve = curve
        self._per_year = _YEAR_S / curve.period_s
        self.break_even_ratio = case.own.usd_per_gpu_hour / case.site.usd_per_gpu_hour

    def sizes(self) -> Sequence[int]:
        """Return the sizes to estimate: evenly apart, and the one that the curve names best."""
        peak = self._curve.peak_gpus
        step = max(1, -(-peak // _CURVE_POINTS))
        return sorted({*range(0, peak, step), peak, self._worth()})

    def estimated(self, gpus: int) -> AdvicePoint:
        """Return the cost of one size, from the curve alone."""
        rented_h = self._curve.rented_gpu_s(gpus) / 3_600 * self._per_year
        return self._point(gpus, rented_h * self._case.site.usd_per_gpu_hour, rented_h)

    def simulated(self, on_run: OnRun | None) -> Iterator[AdvicePoint]:
        """Yield what runs come to: some sizes, and then more beside the best of them."""
        first = self._first_sizes()
        total = len(first) + 2
        found: dict[int, AdvicePoint] = {}
        for gpus in first:
            found[gpus] = self.run(gpus, self._trace)
            if on_run:
                on_run(len(found), total)
        for gpus in self._between(found):
            found[gpus] = self.run(gpus, self._trace)
            if on_run:
                on_run(len(found), total)
        yield from (found[gpus] for gpus in sorted(found))

    def run(self, gpus: int, trace: Trace) -> AdvicePoint:
        """Return the cost of one size, from a run."""
        quota = max(self._case.site.max_rented_gpus, 2 * self._curve.peak_gpus)
        site = self._case.site.model_copy(update={"gpus": gpus, "max_rented_gpus": quota})
        policy = Reservoir.of(self._case.policy or "balanced", late_share=site.late_share)
        result = simulate(trace, site, policy)
        kept = min(result.promises.start_by_jobs, result.promises.delay_by_gpu_time)
        point = self._point(gpus, result.usd * self._per_year, result.rented_gpu_h * self._per_year)
        return point.model_copy(
            update={
                "is_simulated": True,
                "is_kept": kept >= PROMISE_RATIO,
                "wait_p95_s": result.wait_s.p95,
                "home_busy_ratio": result.home_busy_share if gpus else None,
            }
        )

    def _point(self, gpus: int, rented_usd: float, rented_gpu_h: float) -> AdvicePoint:
        own_usd = gpus * self._case.own.usd_per_gpu_year
        return AdvicePoint(
            own_gpus=gpus,
            own_usd=own_usd,
            rented_usd=rented_usd,
            total_usd=own_usd + rented_usd,
            rented_gpu_h=rented_gpu_h,
        )

    def _worth(self) -> int:
        return self._curve.worth_owning(self.break_even_ratio)

    def _first_sizes(self) -> list[int]:
        worth = self._worth()
        sizes = {self._whole((worth or self._curve.mean_gpus) * factor) for factor in _AROUND}
        if not worth:
            sizes.add(0)
        return sorted(size for size in sizes if size <= self._whole(self._curve.peak_gpus))

    def _between(self, found: dict[int, AdvicePoint]) -> list[int]:
        """Return the sizes halfway to the neighbours of the best."""
        sizes = sorted(found)
        kept = [size for size in sizes if found[size].is_kept] or sizes
        best = min(kept, key=lambda size: (found[size].total_usd, size))
        at = sizes.index(best)
        halves = {self._whole((best + other) / 2) for other in sizes[max(0, at - 1) : at + 2]}
        return sorted(halves - set(sizes))

    def _whole(self, gpus: float) -> int:
        """Return whole nodes, the next above."""
        node = self._case.site.node_gpus
        return -(-round(gpus) // node) * node
