"""`hybrid advise`, in a pipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.cli.exits import ExitCode
from hybrid.sim.advise.advice import AdviceView
from tests.cli.conftest import Run

FEW = ("advise", "--steady-gpus", "8", "--peak-gpus", "16")


def test_advise_answers_from_a_few_numbers_and_lists_what_it_assumes(run: Run) -> None:
    shown = run(*FEW, "--quick")

    assert shown.code == 0, shown.err
    assert "Own 8 GPUs and rent what goes beyond" in shown.out
    assert "This is an estimate; no run was simulated." in shown.out
    assert "NVIDIA DGX A100" in shown.out
    assert "our assumption" in shown.out


def test_advise_takes_prices_in_yuan_and_answers_in_dollars_for_programs(run: Run) -> None:
    words = [*FEW, "--quick", "--cny-per-usd", "7", "--price-per-gpu", "70000"]
    words += ["--cloud-price", "28"]

    view = AdviceView.model_validate(json.loads(run(*words, "--json").out))

    assert view.own.usd_per_gpu == pytest.approx(10_000)
    assert view.rented_usd_per_gpu_hour == pytest.approx(4)
    assert "CN¥" in run(*words).out


@pytest.mark.slow
def test_advise_simulates_a_trace(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"{1_800 * n},{3_000 + 200 * (n % 20)},{1 + n % 3}\n" for n in range(100))
    trace = tmp_path / "mine.csv"
    trace.write_text(f"submit_s,duration_s,gpus\n{rows}", encoding="utf-8")

    view = AdviceView.model_validate(json.loads(run("advise", "--trace", str(trace), "--json").out))

    assert view.source == "mine"
    assert view.policy == "balanced"
    assert view.best in view.simulated
    assert view.best.is_kept


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["advise"], "say what is needed: --trace TRACE, or --steady-gpus N and --peak-gpus N"),
        ([*FEW, "--trace", "sample"], "--trace and --steady-gpus exclude one another"),
        ([*FEW, "--days", "1-2"], "add --trace"),
        (["advise", "--steady-gpus", "9", "--peak-gpus", "8"], "below the 9 that are always"),
        (["advise", "--steady-gpus", "-1", "--peak-gpus", "8"], "--steady-gpus"),
        ([*FEW, "--peak-hours-per-day", "nan"], "nan is not above 0"),
        ([*FEW, "--peak-hours-per-day", "25"], "peak_hours_per_day is 25.0: input should be less"),
        ([*FEW, "--price-per-gpu", "0"], "0 is not above 0"),
        ([*FEW, "--years", "inf"], "inf is not above 0"),
        ([*FEW, "--pue", "0.5"], "pue is 0.5: input should be greater"),
        ([*FEW, "--checkpointable", "2"], "2 is not from 0 to 1"),
        ([*FEW, "--policy", "ray"], "take one of thrifty, balanced, fast"),
        ([*FEW, "--html", "/nowhere/at/all.html"], "name a file in a folder that exists"),
    ],
)
def test_nonsense_is_refused_with_what_to_do(run: Run, words: list[str], says: str) -> None:
    shown = run(*words)

    assert shown.code == ExitCode.USAGE
    assert says in " ".join(shown.err.split())
    assert shown.out == ""
