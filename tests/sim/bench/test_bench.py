"""The benchmark, on two days of the sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from hybrid.sim.baselines import tuning
from hybrid.sim.bench.cases import CASES, QUICK, Case
from hybrid.sim.bench.cells import Cell, run_all
from hybrid.sim.bench.measure import Bench
from hybrid.sim.bench.view import BenchRow, BenchView
from hybrid.sim.named import Named

TINY = Case("tiny", "sample", 8, days=(0.0, 2.0), most_usd={"balanced": 1.0})
STRICT = replace(TINY, name="strict", late_share=0.0, baselines_of="tiny", profiles=("balanced",))


@pytest.fixture(autouse=True)
def small_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    grids: Mapping[str, tuple[tuning.Point, ...]] = {
        kind: points[-2:] for kind, points in tuning.GRIDS.items()
    }
    monkeypatch.setattr("hybrid.sim.bench.measure.GRIDS", grids)


def _bench(*cases: Case, seeds: int = 1, **more: object) -> Bench:
    made = Bench(
        cases=cases,
        seeds=range(seeds),
        folder=None,
        is_tuned=True,
        process_count=1,
        on_done=lambda _done, _total, _label: None,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def _row(view: BenchView, case: str, kind: str) -> BenchRow:
    return next(row for row in view.rows if (row.case, row.kind) == (case, kind))


@pytest.mark.slow
def test_every_policy_has_a_row_and_is_held_to_bounds_and_baselines() -> None:
    view = _bench(TINY, STRICT, seeds=2).measure()

    kinds = [row.kind for row in view.rows if row.case == "tiny"]
    assert kinds == ["thrifty", "balanced", "fast", *tuning.KINDS]
    assert [row.kind for row in view.rows if row.case == "strict"] == ["balanced"]
    tiny, strict = view.cases
    assert tiny.bound_usd <= tiny.strict_bound_usd
    assert strict.bound_usd == strict.strict_bound_usd == tiny.strict_bound_usd
    for row in view.rows:
        assert row.usd == pytest.approx(sum(row.usd_by_seed) / 2)
        assert len(row.usd_by_seed) == 2
        assert row.tried == (1 if row.is_profile else 2)
    ray = _row(view, "tiny", "ray")
    assert ray.captured_ratio == pytest.approx(0.0)
    ours = _row(view, "strict", "balanced")
    saved = (ray.usd - ours.usd) / (ray.usd - strict.strict_bound_usd)
    assert ours.captured_ratio == pytest.approx(saved)
    missed = next(each for each in view.targets if (each.what, each.limit) == ("usd", 1.0))
    assert not missed.is_met
    rival = min(r.usd for r in view.rows if not r.is_profile and r.is_promise_kept)
    assert {t.limit for t in view.targets if t.what == "usd, of the best baseline"} == {rival}


@pytest.mark.slow
def test_baselines_of_an_earlier_run_are_taken_as_they_are() -> None:
    earlier = _bench(TINY, has_profiles=False).measure()
    assert not any(row.is_profile for row in earlier.rows)
    told: list[str] = []
    later = _bench(
        TINY, STRICT, earlier=earlier.rows, on_done=lambda _d, _t, label: told.append(label)
    ).measure()
    assert not any("ray" in label for label in told)
    assert [row for row in later.rows if not row.is_profile] == list(earlier.rows)
    assert _row(later, "strict", "balanced").captured_ratio is not None


@pytest.mark.slow
def test_processes_give_the_same_results_as_one() -> None:
    cells = [Cell(TINY, Named(name), seed) for name in ("balanced", "ray") for seed in (0, 1)]
    told: list[tuple[float, int]] = []

    def tell(done: float, total: int, _label: str) -> None:
        told.append((done, total))

    timing = {"wall_s", "decide_p50_s", "decide_p99_s"}
    alone = run_all(cells, None, process_count=1, on_done=tell)
    assert told.pop() == (4, 4)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    told.clear()
    apart = run_all(cells, None, process_count=2, on_done=tell)
    assert told.pop() == (4, 4)
    assert [r.model_dump(exclude=timing) for r in apart] == [
        r.model_dump(exclude=timing) for r in alone
    ]


def test_a_trace_that_is_not_here_is_named_and_the_others_are_run() -> None:
    bench = _bench(replace(TINY, name="far", trace="philly"), TINY, is_tuned=False)
    view = replace(bench, has_profiles=False).measure()
    assert [case.case for case in view.cases] == ["tiny"]
    assert len(view.missing) == 1
    assert view.missing[0].startswith("far: the philly trace is not here")


def test_cases_have_names_of_their_own_and_baselines_that_exist() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert set(QUICK) <= set(names)
    for case in CASES:
        if case.baselines_of:
            other = next(each for each in CASES if each.name == case.baselines_of)
            assert (other.trace, other.gpus, other.days, other.users) == (
                case.trace,
                case.gpus,
                case.days,
                case.users,
            )
