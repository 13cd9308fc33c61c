"""Runs the benchmark: baselines over their grids, profiles over all seeds, then the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.sim.baselines.tuning import GRIDS, KINDS, Point, best_of
from hybrid.sim.bench.cases import Case
from hybrid.sim.bench.cells import Cell, OnDone, now_s, run_all
from hybrid.sim.bench.rows import Ran, case_view, row, targets
from hybrid.sim.bench.view import BenchCase, BenchRow, BenchTarget, BenchView
from hybrid.sim.named import Named
from hybrid.sim.params import A100_USD_PER_HOUR
from hybrid.sim.results import SimResult
from hybrid.sim.traces.reading import TraceError


@dataclass
class Bench:
    """One benchmark while it runs.

    Args:
        cases: What to run.
        seeds: Of boots and failures; the baselines are tuned on the first.
        folder: `HYBRID_TRACES`.
        is_tuned: Whether the baselines' grids are run; otherwise their defaults are.
        process_count: Runs at once.
        on_done: Told how far it is.
        earlier: Rows of baselines of an earlier run, that are taken instead of running them.
        has_profiles: Whether the product's own policy is run.
    """

    cases: Sequence[Case]
    seeds: Sequence[int]
    folder: Path | None
    is_tuned: bool
    process_count: int
    on_done: OnDone
    earlier: Sequence[BenchRow] = ()
    has_profiles: bool = True
    missing: list[str] = field(default_factory=list)

    def measure(self) -> BenchView:
        """Run all of it."""
        began_s = now_s()
        cases = self._present()
        names = {case.name for case in cases}
        known = {row.case for row in self.earlier}
        own = [c for c in cases if c.name not in known and c.baselines_of not in names | known]
        others = self._baselines(own)
        mine = self._profiles(cases) if self.has_profiles else []
        views = {case.name: case_view(case, case.load(self.folder)) for case in cases}
        rows = _rows(cases, views, mine, others, self.earlier)
        found: list[BenchTarget] = []
        for case in cases:
            profiles = [each for each in rows if each.is_profile and each.case == case.name]
            rivals = [
                each
                for each in (*rows, *self.earlier)
                if not each.is_profile and each.case in (case.name, case.baselines_of)
            ]
            found += targets(case, profiles, rivals)
        return BenchView(
            seeds=tuple(self.seeds),
            is_tuned=self.is_tuned,
            usd_per_gpu_hour=A100_USD_PER_HOUR,
            cases=tuple(views.values()),
            rows=tuple(rows),
            targets=tuple(found),
            missing=tuple(self.missing),
            wall_s=now_s() - began_s,
        )

    def _present(self) -> list[Case]:
        found = []
        for case in self.cases:
            try:
                case.load(self.folder)
            except TraceError as error:
                self.missing.append(f"{case.name}: {error}")
            else:
                found.append(case)
        return found

    def _baselines(self, own: Sequence[Case]) -> list[Ran]:
        """Tune each baseline on the first seed, and run its best point on the others."""
        grid: list[tuple[Case, str, Point]] = [
            (case, kind, point)
            for case in own
            for kind in KINDS
            for point in (GRIDS[kind] if self.is_tuned else ({},))
        ]
        first = self._run(
            [Cell(case, Named(kind, dict(p)), self.seeds[0]) for case, kind, p in grid]
        )
        best = []
        for case in own:
            for kind in KINDS:
                runs = [
                    (point, result)
                    for (at, which, point), result in zip(grid, first, strict=True)
                    if at is case and which == kind
                ]
                best.append((case, best_of(kind, runs)))
        cells = [
            Cell(case, Named(tuned.kind, dict(tuned.point)), seed)
            for case, tuned in best
            for seed in self.seeds[1:]
        ]
        rest = iter(self._run(cells))
        return [
            Ran(
                case.name,
                tuned.kind,
                (tuned.result, *(next(rest) for _ in self.seeds[1:])),
                tried=tuned.tried,
            )
            for case, tuned in best
        ]

    def _profiles(self, cases: Sequence[Case]) -> list[Ran]:
        wanted = [(case, name) for case in cases for name in case.profiles]
        cells = [Cell(case, Named(name), seed) for case, name in wanted for seed in self.seeds]
        results = iter(self._run(cells))
        return [
            Ran(case.name, name, tuple(next(results) for _ in self.seeds), is_profile=True)
            for case, name in wanted
        ]

    def _run(self, cells: Sequence[Cell]) -> list[SimResult]:
        return run_all(cells, self.folder, process_count=self.process_count, on_done=self.on_done)


def _rows(
    cases: Sequence[Case],
    views: dict[str, BenchCase],
    mine: Sequence[Ran],
    others: Sequence[Ran],
    earlier: Sequence[BenchRow],
) -> list[BenchRow]:
    """Return the rows of each case: profiles, then its own baselines, old ones as they were."""
    ray_usd = {row.case: row.usd for row in earlier if row.kind == "ray"}
    ray_usd |= {
        ran.case: math.fsum(run.usd for run in ran.results) / len(ran.results)
        for ran in others
        if ran.kind == "ray"
    }
    rows = []
    for case in cases:
        against = ray_usd.get(case.name, ray_usd.get(case.baselines_of))
        shown = [ran for ran in (*mine, *others) if ran.case == case.name]
        rows += [row(views[case.name], ran, against) for ran in shown]
        rows += [each for each in earlier if each.case == case.name]
    return rows
