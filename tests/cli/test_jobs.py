"""`hybrid submit`, `jobs`, `logs`, `cancel`, in a pipe."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from hybrid.cli.submit import entrypoint_of
from hybrid.core.models import Job, JobSpec, JobState
from tests.cli.conftest import Lab, Run


def newest(lab: Lab) -> Job:
    return lab.service.jobs().jobs[0]


def finish_soon(lab: Lab, state: JobState, message: str = "") -> threading.Thread:
    """End the next submitted job as soon as it is there."""

    def wait_and_finish() -> None:
        while lab.service.submit_count == 0:
            time.sleep(0.01)
        lab.service.finish(newest(lab).job_id, state, message)

    thread = threading.Thread(target=wait_and_finish)
    thread.start()
    return thread


def test_submit_sends_the_command_and_every_option(lab: Lab, run: Run, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("1")

    shown = run(
        *("submit", "--gpus", "2", "--cpus", "1.5", "--site", "cloud", "--name", "\u8bad\u7ec3"),
        *("--priority", "70", "-e", "A=1=2", "-e", "B=", "-w", "code"),
        *("--", "python", "a.py", "--lr", "1e-3", "it's"),
    )

    spec = newest(lab).spec
    assert spec.entrypoint == "python a.py --lr 1e-3 'it'\"'\"'s'"
    assert (spec.gpus, spec.cpus, spec.site, spec.priority) == (2, 1.5, "cloud", 70)
    assert spec.env == {"A": "1=2", "B": ""}
    assert spec.name == "\u8bad\u7ec3"
    assert spec.package in lab.service.packages
    assert f"hybrid logs -f {newest(lab).job_id}" in shown.out
    assert shown.code == 0


def test_one_word_is_a_shell_command() -> None:
    assert entrypoint_of(["echo $HOME | wc"]) == "echo $HOME | wc"
    assert entrypoint_of(["echo", "$HOME"]) == "echo '$HOME'"


def test_submit_json_prints_the_job(lab: Lab, run: Run) -> None:
    shown = Job.model_validate_json(run("submit", "--json", "--", "true").out)

    assert shown == newest(lab)


def test_submit_wait_ends_well_when_the_job_does(lab: Lab, run: Run) -> None:
    finishing = finish_soon(lab, JobState.SUCCEEDED)

    shown = run("submit", "--wait", "--", "true")

    finishing.join()
    assert (shown.code, shown.out) == (0, "")
    assert "succeeded" in shown.err


def test_submit_wait_fails_when_the_job_does_and_says_why(lab: Lab, run: Run) -> None:
    finishing = finish_soon(lab, JobState.FAILED, "exit code 3")

    shown = run("submit", "--wait", "--", "false")

    finishing.join()
    assert shown.code == 1
    assert f"job {newest(lab).job_id} failed: exit code 3; see `hybrid logs" in shown.err


def test_submit_follow_prints_the_output_and_nothing_else_to_stdout(lab: Lab, run: Run) -> None:
    finishing = finish_soon(lab, JobState.SUCCEEDED)

    shown = run("submit", "--follow", "--", "true")

    finishing.join()
    assert shown.out == "step 1\nstep 2 \u6b65\u9aa4\ndone\n"


def test_submit_follow_json_is_lines_of_json_and_the_job_at_the_end(lab: Lab, run: Run) -> None:
    finishing = finish_soon(lab, JobState.SUCCEEDED)

    lines = run("submit", "--follow", "--json", "--", "true").out.splitlines()

    finishing.join()
    *pieces, job = [json.loads(line) for line in lines]
    assert "".join(piece["text"] for piece in pieces) == "".join(lab.service.log_pieces)
    assert job["state"] == "succeeded"


def test_submit_wait_json_prints_the_job_that_failed(lab: Lab, run: Run) -> None:
    finishing = finish_soon(lab, JobState.FAILED, "exit code 3")

    shown = run("submit", "--wait", "--json", "--", "false")

    finishing.join()
    assert shown.code == 1
    assert json.loads(shown.out)["message"] == "exit code 3"
    assert "exit code 3" in shown.err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["submit"], "Missing argument"),
        (["submit", "--gpus", "-1", "--", "x"], "--gpus"),
        (["submit", "--priority", "101", "--", "x"], "--priority"),
        (["submit", "--site", "moon", "--", "x"], "moon"),
        (["submit", "-e", "A", "--", "x"], "NAME=VALUE"),
        (["submit", "-w", "missing", "--", "x"], "'missing' does not exist"),
        (["submit", "--", ""], "entrypoint"),
    ],
)
def test_a_senseless_submit_is_a_usage_error(
    lab: Lab, run: Run, words: list[str], part: str
) -> None:
    shown = run(*words)

    assert shown.code == 2
    assert part in shown.err
    assert "Traceback" not in shown.err


def test_a_job_that_ray_refuses_is_refused(lab: Lab, run: Run) -> None:
    shown = run("submit", "--", "refuse me")

    assert shown.code == 4
    assert shown.err == "Error: Ray refuses this entrypoint\n"


def test_logs_print_the_output_as_it_is_but_for_colours_in_a_pipe(lab: Lab, run: Run) -> None:
    lab.service.log_pieces = ["\x1b[1m\x1b[32mgreen\x1b[0m\r50%\r100%\n", "no newline"]

    assert run("logs", "j-running").out == "green\r50%\r100%\nno newline"


def test_logs_follow_until_the_end(lab: Lab, run: Run) -> None:
    assert run("logs", "-f", "j-running").out == "step 1\nstep 2 \u6b65\u9aa4\ndone\n"


def test_logs_json_is_lines_of_json(lab: Lab, run: Run) -> None:
    lines = run("logs", "--json", "--follow", "j-running").out.splitlines()

    pieces = [json.loads(line) for line in lines]
    assert "".join(piece["text"] for piece in pieces) == "".join(lab.service.log_pieces)
    assert {piece["job_id"] for piece in pieces} == {"j-running"}


@pytest.mark.parametrize("words", [["logs"], ["logs", "-f"], ["cancel"]])
def test_an_unknown_job_is_a_failure_that_says_where_to_look(
    lab: Lab, run: Run, words: list[str]
) -> None:
    shown = run(*words, "j-nope")

    assert shown.code == 1
    assert "no job 'j-nope'; `hybrid jobs` lists them" in shown.err


def test_cancel_says_what_became_of_the_job(lab: Lab, run: Run) -> None:
    assert run("cancel", "j-running").out == "j-running: cancelled\n"
    assert run("cancel", "j-failed").out == "j-failed: failed\n"
    assert json.loads(run("cancel", "--json", "j-running").out)["state"] == "cancelled"


def test_columns_in_which_every_job_is_as_usual_are_left_out(lab: Lab, run: Run) -> None:
    lab.service._jobs.clear()
    lab.service.submit(JobSpec(entrypoint="true"), job_id="j-plain")

    header, row = run("jobs").out.splitlines()
    lab.service.submit(JobSpec(entrypoint="true", gpus=2, user="ada"), job_id="j-more")
    more = run("jobs").out.splitlines()[0]

    lab.service.submit(JobSpec(entrypoint="python " + "x" * 500), job_id="j-long")
    long = run("jobs").out

    assert f"python {'x' * 50}...\n" in long
    assert header.split() == ["ID", "STATE", "AGE", "RAN", "COMMAND"]
    assert row.endswith("true")
    assert more.split() == ["ID", "STATE", "AGE", "RAN", "GPUS", "USER", "COMMAND"]


def test_audit_shows_what_left_a_jobs_site(run: Run, lab: Lab) -> None:
    run("submit", "--site", "onprem", "--gpus", "1", "--", "python", "a.py")
    job_id = newest(lab).job_id

    shown = run("audit", job_id)

    assert "may run on onprem; it ran on: cloud, onprem. Not kept: 1 tasks and actors" in shown.out
    assert "Loader" in shown.out
    assert shown.code == 0


@pytest.mark.parametrize("when", ["tomorrow", "in x", "in 8"])
def test_a_senseless_deadline_is_a_usage_error(run: Run, when: str) -> None:
    refused = run("submit", "--deadline", when, "--", "x")

    assert refused.code == 2
    assert "--deadline takes 'in 8h', or a time such as" in refused.err


def test_a_deadline_is_an_instant(run: Run, lab: Lab) -> None:
    run("submit", "--gpus", "1", "--deadline", "2026-12-24T18:00:00+00:00", "--", "x")
    assert newest(lab).spec.deadline_at_s == 1_798_135_200.0
