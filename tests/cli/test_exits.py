"""Every documented exit code, and no traceback but for bugs."""

from __future__ import annotations

import pytest

from hybrid.cli.exits import ExitCode, StopError, code_of
from hybrid.client.errors import NoClusterError, UnreachableError, api_error
from hybrid.core.errors import (
    CapExceededError,
    ClusterError,
    ConfigError,
    HybridError,
    JobError,
    LedgerError,
)
from tests.api.fake_service import FakeService
from tests.cli.conftest import Lab, Run
from tests.running import TOKEN, Running, dead_pid, write_record


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (HybridError("x"), 1),
        (JobError("x"), 1),
        (api_error(404, "JobError", "x"), 1),
        (ConfigError("x"), 2),
        (api_error(400, "ConfigError", "x"), 2),
        (api_error(401, "TokenError", "x"), 2),
        (api_error(413, "TooLargeError", "x"), 2),
        (api_error(422, "ValidationError", "x"), 2),
        (NoClusterError("x"), 3),
        (api_error(409, "HybridError", "x"), 4),
        (CapExceededError("x", cap="node_count"), 4),
        (UnreachableError("x"), 5),
        (ClusterError("x"), 5),
        (LedgerError("x"), 5),
        (api_error(500, "InternalError", "x"), 5),
        (api_error(503, "LedgerError", "x"), 5),
        (StopError("x", ExitCode.REFUSED), 4),
    ],
    ids=lambda value: (
        f"{type(value).__name__}-{getattr(value, 'status', '')}"
        if isinstance(value, HybridError)
        else str(value)
    ),
)
def test_each_error_has_its_exit_code(error: HybridError, code: int) -> None:
    assert code_of(error) == code


def test_every_code_has_a_meaning() -> None:
    assert all(code.meaning for code in ExitCode)


def test_0_when_all_is_well(lab: Lab, run: Run) -> None:
    assert run("status").code == 0
    assert run("--help").code == 0
    assert run("--version").out == "hybrid 0.1.0\n"


@pytest.mark.parametrize("words", [["nope"], ["status", "--nope"], ["status", "extra"]])
def test_2_for_wrong_usage(lab: Lab, run: Run, words: list[str]) -> None:
    shown = run(*words)

    assert shown.code == 2
    assert "Usage: hybrid" in shown.err
    assert shown.out == ""


def test_2_for_a_wrong_token(lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_TOKEN", "stolen-canary")

    shown = run("status", "--json")

    assert shown.code == 2
    assert "unset HYBRID_TOKEN" in shown.err
    assert "stolen-canary" not in shown.err


def test_2_when_several_clusters_run_and_none_is_named(lab: Lab, run: Run) -> None:
    other = Running(lab.state_dir.parent / "prod", FakeService(cluster="prod"))

    several = run("status")
    named = run("status", "--json", "--cluster", "prod")

    other.stop()
    assert several.code == 2
    assert "lab, prod; choose one with --cluster" in several.err
    assert '"name":"prod"' in named.out


@pytest.mark.parametrize(
    "words", [["status"], ["status", "--json"], ["jobs"], ["logs", "j-1"], ["submit", "--", "x"]]
)
def test_3_when_no_cluster_runs(run: Run, words: list[str]) -> None:
    shown = run(*words)

    assert shown.code == 3
    assert shown.err == "Error: no hybrid cluster is running; start one with `hybrid up`\n"


def test_3_when_the_controller_died(lab: Lab, run: Run) -> None:
    write_record(lab.state_dir, url=lab.server.url, pid=dead_pid())

    shown = run("status")

    assert shown.code == 3
    assert "the controller of lab died" in shown.err


def test_5_when_the_controller_does_not_answer(lab: Lab, run: Run) -> None:
    write_record(lab.state_dir, url="http://127.0.0.1:1")

    shown = run("status", "--json")

    assert shown.code == 5
    assert "controller.log" in shown.err


def test_a_bug_shows_its_traceback_and_says_that_it_is_one() -> None:
    import subprocess
    import sys

    code = (
        "import hybrid.cli.quick as quick\n"
        "def broken(words): raise ZeroDivisionError('oops')\n"
        "quick.answer = broken\n"
        "from hybrid.cli.main import main\n"
        "main(['status'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert ended.returncode == 1
    assert "Traceback" in ended.stderr
    assert "ZeroDivisionError: oops" in ended.stderr
    assert ended.stderr.rstrip().endswith("Please report it with the lines above.")


def test_nobody_reading_on_is_no_traceback(lab: Lab, environment: dict[str, str]) -> None:
    import subprocess
    import sys

    lab.service.cloud_node_count = 5000
    words = [sys.executable, "-m", "hybrid.cli.main", "nodes"]
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read().decode()

    assert "Traceback" not in said
    assert TOKEN not in said
