"""`hybrid sim run`, `hybrid sim compare` and `hybrid sim bench`, in a pipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.cli.exits import ExitCode
from hybrid.sim.bench.view import BenchView
from hybrid.sim.runs import SimRunsView
from tests.cli.conftest import Run

JOBS = "submit_s,duration_s,gpus\n" + "".join(
    f"{60 * number},{600 + 97 * number},{1 + number % 3}\n" for number in range(30)
)


@pytest.fixture(autouse=True)
def no_public_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HYBRID_TRACES", raising=False)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "mine.csv"
    path.write_text(JOBS, encoding="utf-8")
    return str(path)


def test_run_says_what_a_policy_cost_and_which_promises_it_kept(run: Run, trace: str) -> None:
    shown = run("sim", "run", "--trace", trace, "--gpus", "8")

    assert shown.code == 0, shown.err
    assert "mine: 30 jobs, 8 GPUs at home, $3.67/h for a rented GPU, seed 0" in shown.out
    for word in ("balanced", "cost", "rented", "wait p50, p95, p99", "in time", "interruptions"):
        assert f"\n{word}" in shown.out


def test_equal_seeds_give_equal_json_and_settings_are_in_it(run: Run, trace: str) -> None:
    words = ["--trace", trace, "--gpus", "8", "--policy", "ray", "--json", "--seed", "3"]
    words += ["--set", "idle_after=1m", "--set", "sim.boot.median=2m", "--max-wait", "1h"]

    first = json.loads(run("sim", "run", *words).out)
    second = json.loads(run("sim", "run", *words).out)

    view = SimRunsView.model_validate(first)
    assert view.results[0].policy == "ray(idle 60 s)"
    assert (view.params.seed, view.params.boot.median_s) == (3, 120.0)
    assert view.params.max_wait_s == 3_600.0
    assert second["results"][0]["usd"] == first["results"][0]["usd"]
    assert second["results"][0]["series"] == first["results"][0]["series"]


def test_compare_puts_policies_side_by_side_in_the_order_of_their_names(
    run: Run, trace: str
) -> None:
    words = ["--trace", trace, "--gpus", "8", "--policies", "fast,ray,slurm"]
    words += ["--set", "suspend_after=5m"]

    shown = run("sim", "compare", *words)

    assert shown.code == 0, shown.err
    rows = shown.out.splitlines()[3:]
    assert [row.split("(")[0].split()[0] for row in rows] == ["fast", "ray", "slurm"]
    # Both profiles and Slurm have it; Ray does not, and is run as it is.
    assert "slurm(suspend 300 s, rate 10)" in rows[2]


def test_a_share_of_the_jobs_can_be_checkpointed(run: Run, trace: str) -> None:
    words = ["--trace", trace, "--gpus", "8", "--policy", "thrifty", "--json"]

    none = json.loads(run("sim", "run", *words, "--checkpointable", "0").out)["results"][0]

    stops = none["interruptions"]
    assert stops["most_of_one_job"] == 0
    assert none["promises"]["start_by_jobs"] == 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--policy", "best"], "there is no policy 'best'; take one of thrifty"),
        (["run", "--set", "x=1"], "balanced has no parameter 'x'"),
        (["run", "--set", "x"], "--set 'x': write NAME=VALUE"),
        (["run", "--set", "hold=1s", "--set", "hold=2s"], "--set hold is there twice"),
        (["run", "--price", "0"], "--price must be above 0"),
        (["run", "--checkpointable", "2"], "2 is not from 0 to 1"),
        (["run", "--max-wait", "soon"], "'soon' is not a duration"),
        (["run", "--late-share", "-1"], "-1 is not 0 or more"),
        (["run", "--trace", "philly"], "HYBRID_TRACES is not set"),
        (["run", "--set", "sim.max_rented_gpus=0", "--gpus", "0"], "could ever run"),
        (["compare", "--policies", ""], "--policies names none"),
        (["compare", "--policies", "ray,ray"], "a policy is named twice"),
        (["compare", "--policies", "ray,hpa", "--set", "hold=1s"], "none of ray, hpa has it"),
    ],
)
def test_bad_input_is_a_usage_error_that_says_what_to_do(
    run: Run, words: list[str], said: str
) -> None:
    gpus = [] if "--gpus" in words else ["--gpus", "8"]

    shown = run("sim", *words, *gpus)

    assert shown.code == ExitCode.USAGE
    assert said in shown.err
    assert not shown.out


def test_bench_names_its_cases_and_refuses_others(run: Run) -> None:
    shown = run("sim", "bench", "--cases", "philly-600")
    assert shown.code == ExitCode.USAGE
    assert "there are philly-640, philly-512" in shown.err


def test_bench_without_public_traces_says_where_they_are_missing(run: Run) -> None:
    shown = run("sim", "bench", "--cases", "philly-640")
    assert shown.code == ExitCode.USAGE
    assert "HYBRID_TRACES is not set" in shown.err


def test_bench_takes_no_baselines_that_were_made_in_another_way(run: Run, tmp_path: Path) -> None:
    made = BenchView(
        seeds=(0,),
        is_tuned=False,
        usd_per_gpu_hour=1.0,
        cases=(),
        rows=(),
        targets=(),
        missing=(),
        wall_s=0.0,
    )
    path = tmp_path / "made.json"
    path.write_text(made.model_dump_json(), encoding="utf-8")
    shown = run("sim", "bench", "--baselines", str(path))
    assert shown.code == ExitCode.USAGE
    assert "has seeds 0 and baselines that were not tuned" in shown.err
    path.write_text("{}", encoding="utf-8")
    shown = run("sim", "bench", "--baselines", str(path))
    assert "is no document of `hybrid sim bench --json`" in shown.err
