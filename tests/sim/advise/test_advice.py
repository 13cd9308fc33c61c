"""What to own and what to rent: small cases by hand, and what runs say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.sim.advise.advice import AdviceView, Case, advise
from hybrid.sim.advise.demand import DemandCurve
from hybrid.sim.advise.described import Description, described
from hybrid.sim.advise.page import write_advice
from hybrid.sim.advise.words import Money, sentences
from hybrid.sim.params import SimParams
from hybrid.sim.report.lang import Words
from hybrid.sim.traces.trace import DAY_S, Trace, TraceJob
from tests.sim.advise.test_hardware import ROUND

HOUR_S = 3_600.0
# 8 GPUs all day, 16 more for 6 hours.
ABOUT = Description(steady_gpus=8, peak_gpus=24, peak_hours_per_day=6, job_gpus=8, job_hours=2)
SITE = SimParams(gpus=0, usd_per_gpu_hour=4.0)
CASE = Case(own=ROUND, site=SITE, policy=None)


def told(view: AdviceView, money: Money | None = None) -> str:
    return " ".join(sentences(view, Words("en"), money or Money()))


def test_a_curve_knows_how_long_each_number_of_gpus_is_needed() -> None:
    jobs = [TraceJob("a", 0, 10, 2), TraceJob("b", 5, 10, 3), TraceJob("c", 15, 5, 3)]

    curve = DemandCurve.of(Trace.of("t", jobs), period_s=40)

    # 2 until 5 s, 5 until 10 s, 3 until 20 s, then none.
    assert curve.held_s_by_gpus == {2: 5.0, 3: 10.0, 5: 5.0}
    assert (curve.peak_gpus, curve.mean_gpus) == (5, 65 / 40)
    assert [curve.rented_gpu_s(own) for own in (0, 2, 3, 4, 5)] == [65, 25, 10, 5, 0]
    assert [curve.needed_ratio(gpus) for gpus in (1, 3, 4, 6)] == [0.5, 0.375, 0.125, 0]
    assert [curve.worth_owning(share) for share in (0.1, 0.2, 0.4, 0.6)] == [5, 3, 2, 0]


def test_no_work_of_a_trace_is_lost_in_its_curve() -> None:
    trace = described(ABOUT)

    assert DemandCurve.of(trace, ABOUT.period_s).rented_gpu_s(0) == pytest.approx(trace.gpu_s)


@pytest.mark.parametrize("seed", range(3))
def test_a_description_needs_exactly_what_it_says(seed: int) -> None:
    about = ABOUT.model_copy(update={"seed": seed, "job_gpus": 3, "peak_days_per_week": 5})

    curve = DemandCurve.of(described(about), about.period_s)

    assert curve.held_s_by_gpus == {
        8: pytest.approx(7 * 24 * HOUR_S - 30 * HOUR_S),
        24: pytest.approx(30 * HOUR_S),
    }


def test_a_peak_of_the_whole_day_fits_into_it() -> None:
    about = ABOUT.model_copy(update={"peak_hours_per_day": 24.0})

    curve = DemandCurve.of(described(about), about.period_s)

    assert curve.held_s_by_gpus == {24: pytest.approx(7 * DAY_S)}


def test_a_description_is_the_same_for_equal_seeds_and_marks_a_share() -> None:
    about = ABOUT.model_copy(update={"checkpointable": 0.5, "job_gpus": 1})
    trace = described(about)

    assert trace == described(about)
    share = sum(job.is_checkpointable for job in trace.jobs) / len(trace.jobs)
    assert share == pytest.approx(0.5, abs=0.1)


def test_a_peak_below_what_is_always_needed_is_refused() -> None:
    with pytest.raises(ValueError, match="peak of 7 GPUs is below the 8 that are always needed"):
        described(ABOUT.model_copy(update={"peak_gpus": 7}))


def test_the_estimate_is_what_one_reckons_by_hand() -> None:
    view = advise(described(ABOUT), CASE, period_s=ABOUT.period_s)

    # A GPU at home: 12,514 a year, 1.4285 an hour; needed all day 8, a quarter of it 24.
    assert view.break_even_ratio == pytest.approx(12_514 / 8_760 / 4)
    assert view.mean_gpus == pytest.approx(8 + 16 / 4)
    assert view.best.own_gpus == 8
    assert view.best.own_usd == pytest.approx(8 * 12_514)
    assert view.best.rented_gpu_h == pytest.approx(16 * 6 * 365)
    assert view.best.rented_usd == pytest.approx(16 * 6 * 365 * 4)
    assert view.best.is_kept is None
    none, peak = view.points[0], view.points[-1]
    assert (none.own_gpus, none.own_usd) == (0, 0)
    assert none.total_usd == pytest.approx(12 * 8_760 * 4)
    assert (peak.own_gpus, peak.rented_usd) == (24, 0)
    assert "Own 8 GPUs and rent what goes beyond: $100,112 a year for your own" in told(view)
    assert "needed more than 36% of the time" in told(view)


def test_owning_never_pays_where_renting_is_cheaper_at_full_use() -> None:
    cheap = Case(own=ROUND, site=SITE.model_copy(update={"usd_per_gpu_hour": 1.0}), policy=None)

    view = advise(described(ABOUT), cheap, period_s=ABOUT.period_s)

    assert view.best.own_gpus == 0
    assert "Own none and rent all" in told(view)
    assert "owning never pays" in told(view)


def test_money_is_said_in_yuan_where_a_rate_is_given() -> None:
    view = advise(described(ABOUT), CASE, period_s=ABOUT.period_s)

    assert f"CN¥{8 * 12_514 * 7:,.0f} a year for your own" in told(view, Money("CNY", 7.0))


def test_a_trace_of_hours_says_nothing_of_a_year() -> None:
    jobs = [TraceJob("a", 0, 60, 1), TraceJob("b", HOUR_S, 60, 1)]

    with pytest.raises(ValueError, match=r"over 1\.0 hours only; give one of a day or more"):
        advise(Trace.of("short", jobs), CASE)


@pytest.mark.slow
def test_runs_cost_more_than_the_estimate_by_boots_and_agree_on_what_to_own() -> None:
    case = CASE.model_copy(update={"policy": "balanced"})
    seen: list[tuple[int, int]] = []

    view = advise(
        described(ABOUT), case, period_s=ABOUT.period_s, on_run=lambda *at: seen.append(at)
    )

    estimate = {point.own_gpus: point for point in view.points}
    assert view.best.own_gpus == 8
    assert view.best.is_simulated
    assert view.best.is_kept
    assert [done for done, _ in seen] == list(range(1, len(view.simulated) + 1))
    for point in view.simulated:
        assert 0.9 < point.total_usd / estimate[point.own_gpus].total_usd < 1.3
    assert view.without_checkpoints_usd is not None


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_and_the_picture_are_written(tmp_path: Path, lang: str) -> None:
    html, picture = tmp_path / "a.html", tmp_path / "a.png"
    trace = described(ABOUT)
    view = advise(trace, CASE, period_s=ABOUT.period_s)
    curve = DemandCurve.of(trace, ABOUT.period_s)

    write_advice(
        view,
        curve,
        html=html,
        money=Money("CNY", 7.0),
        command="c",
        lang="zh" if lang == "zh" else "en",
    )
    write_advice(view, curve, picture=picture)

    text = html.read_text(encoding="utf-8")
    assert ("What to own and what to rent" in text) == (lang == "en")
    assert "CN¥" in text
    assert "<script" not in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_every_sentence_of_advice_has_a_chinese_form() -> None:
    kept = advise(described(ABOUT), CASE, period_s=ABOUT.period_s)
    best = kept.best.model_copy(update={"is_simulated": True, "is_kept": False})
    all_own = best.model_copy(update={"own_gpus": 24, "rented_usd": 0.0})
    none = best.model_copy(update={"own_gpus": 0})
    say = Words("zh")
    for changes in (
        {"policy": "balanced", "best": best, "without_checkpoints_usd": 10**9},
        {"policy": "balanced", "best": best, "without_checkpoints_usd": 0.0},
        {"best": all_own, "break_even_ratio": 2.0},
        {"best": none},
    ):
        list(sentences(kept.model_copy(update=changes), say, Money()))

    assert say.missing == set()
