"""`hybrid trace` and `hybrid sim bound`, in a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.cli.exits import ExitCode
from hybrid.sim.bounds.report import BoundsView
from hybrid.sim.traces.summary import TraceView
from tests.cli.conftest import Run
from tests.cli.test_speed import loaded

JOBS = "submit_s,duration_s,n\n0,7200,4\n3600,90000,2\n3500,600,1\n3600,0,1\n"


@pytest.fixture(autouse=True)
def no_public_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HYBRID_TRACES", raising=False)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.csv"
    path.write_text(JOBS, encoding="utf-8")
    return path


def test_show_says_what_is_in_the_sample(run: Run) -> None:
    shown = run("trace", "show")

    assert shown.code == 0, shown.err
    assert "sample: 36d23h of jobs" in shown.out
    assert (
        "2441 jobs of 6 users, 17,053 GPU-hours; 85% of the work can be checkpointed" in shown.out
    )
    assert "72 at the most" in shown.out


def test_show_json_has_the_documented_shape(run: Run) -> None:
    view = TraceView.model_validate(json.loads(run("trace", "show", "--json").out))

    assert view.kind == "jobs"
    assert view.jobs is not None
    assert view.jobs.jobs == 2_441
    assert (view.rates, view.zones, view.skipped) == (None, None, ())


def test_import_writes_a_file_and_says_what_was_not_taken_over(
    run: Run, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "mine.csv.gz"

    done = run("trace", "import", "csv", str(source), "--column", "gpus=n", "--out", str(out))

    assert done.code == 0, done.err
    assert "3 jobs of 1 user, 58 GPU-hours" in done.out
    assert "1 left out: the duration is not above 0 (line 5)" in done.out
    assert "1 kept: earlier than the line before; sorted (line 4)" in done.out
    again = run("trace", "show", str(out), "--json")
    jobs = TraceView.model_validate(json.loads(again.out)).jobs
    assert jobs is not None
    assert jobs.peak_gpus == 7


def test_import_is_strict_when_asked(run: Run, source: Path) -> None:
    done = run("trace", "import", "csv", str(source), "--column", "gpus=n", "--strict")

    assert done.code == ExitCode.USAGE
    assert f"{source}, line 4: earlier than the line before" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("trace", "import", "philly"), "HYBRID_TRACES is not set"),
        (("trace", "import", "csv"), "no public trace for csv"),
        (("trace", "import", "csv", "x", "--column", "gpus"), "write OURS=THEIRS"),
        (("trace", "import", "swf", "x", "--column", "gpus=n"), "--column goes with csv only"),
        (("trace", "import", "swf", "x", "--processors-per-gpu", "nan"), "not above 0"),
        (("trace", "import", "pbs", "x"), "'pbs' is not one of"),
        (("trace", "show", "none.csv"), "there is no file none.csv"),
        (("sim", "bound", "--gpus", "8", "--days", "9-3"), "is not FROM-TO"),
        (("sim", "bound", "--gpus", "8", "--days", "90-91"), "has no job; it is"),
        (("sim", "bound", "--gpus", "8", "--users", "vision,x"), "has no job of x"),
        (("sim", "bound", "--gpus", "8", "--late-share", "nan"), "not 0 or more"),
        (("sim", "bound", "--gpus", "8", "--price", "-1"), "not 0 or more"),
        (("sim", "bound", "--gpus", "-8"), "greater than or equal to 0"),
        (("sim", "bound", "--gpus", "8", "--max-wait", "long"), "not a duration"),
    ],
)
def test_what_is_wrong_is_said_and_ends_in_usage(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    done = run(*words)

    assert done.code == ExitCode.USAGE
    assert said in done.err.replace("\n", " ")
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_bound_names_the_policies_that_each_holds_for(run: Run) -> None:
    shown = run("sim", "bound", "--gpus", "24", "--days", "0-14")

    assert shown.code == 0, shown.err
    rows = {
        line.split()[0]: line for line in shown.out.splitlines() if " at " in line or "(at" in line
    }
    assert "no job interrupted or moved, each starts within 30m" in rows["LB-N"]
    assert "none ends more than 30m late" in rows["LB-M"]
    assert "0.02 of its run time" in rows["LB-M(phi)"]
    assert "knowledge of the future" in rows["UB"]
    assert "LB-N, round 0" in shown.err


@pytest.mark.slow
def test_bound_json_has_the_documented_shape(run: Run) -> None:
    shown = run("sim", "bound", "--gpus", "24", "--users", "vision", "--price", "1", "--json")

    view = BoundsView.model_validate(json.loads(shown.out))
    assert (view.gpus, view.max_wait_s, view.late_share) == (24, 1_800.0, 0.02)
    assert [bound.name for bound in view.bounds] == ["LB-N", "LB-M", "LB-M(phi)", "UB"]
    assert all(bound.usd == bound.gpu_hours for bound in view.bounds)


def test_looking_into_a_trace_loads_no_server_no_cloud_and_no_numbers(
    environment: dict[str, str],
) -> None:
    heavy = set(loaded(["trace", "show", "--json"], environment).split("|")[0].split(","))

    assert heavy <= {"pydantic", "yaml"}


@pytest.mark.parametrize("missing", ["numpy", "scipy"])
def test_bound_without_its_extra_says_what_to_install(
    environment: dict[str, str], missing: str
) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from hybrid.cli.main import main; main(['sim', 'bound', '--gpus', '8'])"
    )

    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )

    assert ended.returncode == ExitCode.USAGE
    assert f"{missing} is not installed here; run `pip install 'hybrid-burst[sim]'`" in ended.stderr
    assert "Traceback" not in ended.stderr
