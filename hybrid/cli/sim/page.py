"""Pages of what simulations came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.cli import words
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.sim.bench.view import BenchTarget, BenchView
    from hybrid.sim.params import SimParams
    from hybrid.sim.results import SimResult


def run_page(result: SimResult, site: SimParams) -> list[Part]:
    """Return the lines of one run."""
    kept, stops = result.promises, result.interruptions
    idle = share(result.idle_gpu_h, result.rented_gpu_h)
    locked = share(result.lock_in_gpu_h, result.rented_gpu_h)
    return [
        text(_head(result, site)),
        text(""),
        table(
            (f"{result.policy}", ""),
            [
                ("cost", words.money(result.usd)),
                (
                    "rented",
                    f"{result.rented_gpu_h:,.0f} GPU-hours: {idle} without work (boots included), "
                    f"{locked} while home had room",
                ),
                (
                    "nodes",
                    f"{result.launches:,} launches, of which {result.failed:,} found no capacity "
                    f"and {result.flaps:,} came within 15 minutes after a return",
                ),
                ("home", f"{result.home_busy_share:.1%} of the GPU-time had work"),
                ("wait p50, p95, p99", _waits(result)),
                (
                    "in time",
                    f"{kept.start_by_jobs:.2%} of the jobs started; {kept.delay_by_jobs:.2%} of "
                    f"the jobs and {kept.delay_by_gpu_time:.2%} of the work ended",
                ),
                (
                    "interruptions",
                    f"{stops.suspended:,} suspended, {stops.packed:,} moved at home, "
                    f"{stops.brought_home:,} brought home, {stops.exchanged:,} exchanged; "
                    f"{stops.most_of_one_job} at most of one job",
                ),
                (
                    "decisions",
                    f"{result.decide_count:,}, p50 {_ms(result.decide_p50_s)}, "
                    f"p99 {_ms(result.decide_p99_s)}",
                ),
                ("took", words.duration(result.wall_s)),
            ],
        ),
    ]


def compare_page(results: Sequence[SimResult], site: SimParams) -> list[Part]:
    """Return the table of several runs."""
    columns = (
        "POLICY",
        Column("COST", is_number=True),
        Column("RENTED GPU H", is_number=True),
        Column("IDLE", is_number=True),
        Column("LOCKED IN", is_number=True),
        Column("WAIT P50", is_number=True),
        Column("P95", is_number=True),
        Column("P99", is_number=True),
        Column("STARTED IN TIME", is_number=True),
        Column("WORK IN TIME", is_number=True),
        Column("LAUNCHES", is_number=True),
        Column("STOPS", is_number=True),
    )
    rows = [
        (
            result.policy,
            words.money(result.usd),
            f"{result.rented_gpu_h:,.0f}",
            share(result.idle_gpu_h, result.rented_gpu_h),
            share(result.lock_in_gpu_h, result.rented_gpu_h),
            *map(words.duration, _three(result)),
            f"{result.promises.start_by_jobs:.2%}",
            f"{result.promises.delay_by_gpu_time:.2%}",
            f"{result.launches:,}",
            f"{_stops(result):,}",
        )
        for result in results
    ]
    return [text(_head(results[0], site)), text(""), table(columns, rows)]


def bench_page(view: BenchView) -> list[Part]:
    """Return the table of the benchmark, and its targets."""
    tuned = "tuned on the first" if view.is_tuned else "by default, not tuned"
    parts: list[Part] = [
        text(
            f"{words.count(len(view.seeds), 'seed')}; baselines {tuned}; "
            f"{words.rate(view.usd_per_gpu_hour)} for a rented GPU"
        )
    ]
    for case in view.cases:
        parts += [
            text(""),
            text(
                f"{case.case}: {case.trace}, {case.jobs:,} jobs, {case.gpu_hours:,.0f} GPU-hours, "
                f"{case.gpus} GPUs at home, {case.checkpointable_ratio:.0%} checkpointable, "
                f"phi {case.late_share:g}; at least {words.money(case.bound_usd)} (LB-M(phi)), "
                f"LB-M {words.money(case.strict_bound_usd)}"
            ),
            _bench_table(view, case.case),
        ]
    if view.targets:
        missed = [each for each in view.targets if not each.is_met]
        met = len(view.targets) - len(missed)
        parts += [text(""), text(f"{met} of {len(view.targets)} targets are met")]
        parts += [text(_missed(each)) for each in missed]
    parts += [text(f"not run: {why}") for why in view.missing]
    parts += [
        text(""),
        text("CAPTURED is of what tuned ray pays above LB-M. See docs/benchmarks.md."),
    ]
    return parts


def share(part: float, whole: float) -> str:
    """Return a part in percent; nothing of nothing is `-`."""
    return f"{part / whole:.1%}" if whole else "-"


def _bench_table(view: BenchView, case: str) -> Part:
    numbers = [Column(name, is_number=True) for name in _BENCH_COLUMNS]
    columns: list[Column | str] = ["POLICY", *numbers]
    rows = [
        (
            f"{row.policy}{'' if row.is_promise_kept else ' *'}",
            words.money(row.usd),
            _ratio(row.bound_ratio),
            _ratio(row.strict_bound_ratio),
            "-" if row.captured_ratio is None else f"{row.captured_ratio:.1%}",
            f"{row.start_by_jobs:.2%}",
            f"{row.delay_by_gpu_time:.2%}",
            f"{row.wait_s.p50:,.0f}",
            f"{row.wait_s.p95:,.0f}",
            f"{row.wait_s.p99:,.0f}",
            words.money(row.idle_usd),
            f"{row.lock_in_gpu_h:,.0f}",
            f"{row.flaps:,.0f}",
            f"{row.moves:,.0f}",
            f"{row.suspensions:,.0f}",
            str(row.most_interruptions),
            f"{row.decide_p50_s * 1e3:.2f}",
            f"{row.decide_p99_s * 1e3:.2f}",
        )
        for row in view.rows
        if row.case == case
    ]
    return table(columns, rows)


_BENCH_COLUMNS = (
    "COST",
    "X LB-M(PHI)",
    "X LB-M",
    "CAPTURED",
    "STARTED",
    "WORK",
    "P50 S",
    "P95 S",
    "P99 S",
    "IDLE",
    "LOCKED H",
    "FLAPS",
    "MOVES",
    "SUSP",
    "MOST",
    "P50 MS",
    "P99 MS",
)


def _missed(each: BenchTarget) -> str:
    value = "unknown" if each.value is None else f"{each.value:,.4g}"
    word = "at least" if each.is_least else "at most"
    return f"missed: {each.case} {each.policy}, {each.what} {value}, {word} {each.limit:,.4g}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _head(result: SimResult, site: SimParams) -> str:
    return (
        f"{result.trace}: {words.count(result.job_count, 'job')}, {result.gpus} GPUs at home, "
        f"{words.rate(site.usd_per_gpu_hour)} for a rented GPU, seed {result.seed}"
    )


def _waits(result: SimResult) -> str:
    return ", ".join(map(words.duration, _three(result)))


def _three(result: SimResult) -> tuple[float, float, float]:
    return result.wait_s.p50, result.wait_s.p95, result.wait_s.p99


def _stops(result: SimResult) -> int:
    stops = result.interruptions
    return stops.suspended + stops.packed + stops.brought_home + stops.exchanged


def _ms(value_s: float) -> str:
    return f"{value_s * 1e3:.2g} ms"
