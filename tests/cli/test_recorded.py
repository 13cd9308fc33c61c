"""`hybrid sim replay` and `hybrid trace record`, in a pipe."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import hybrid
from hybrid.adapters.decision_files import FOLDER, DecisionFiles
from hybrid.cli.exits import ExitCode
from hybrid.core.models import Job, JobSpec, JobState
from hybrid.core.policy.decide import decide
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Snapshot
from hybrid.sim.recorded.replay import ReplayView
from hybrid.sim.traces.summary import TraceView
from tests.api import canned
from tests.cli.conftest import Lab, Run
from tests.core.make import make_demand, make_node, make_offer

PARAMS = PolicyParams(max_wait_s=60.0, stabilisation_s=0.0)


def write(folder: Path, *, start_s: float = 1_800_000_000.0) -> Path:
    """Write the record of one hour: four GPUs wait for home, and get a place there at last."""
    files = DecisionFiles(folder, version=hybrid.__version__, kept_s=86_400.0, pause_s=0.0)
    for number in range(60):
        waits = [make_demand(4, waiting_s=60.0 * number)] if number < 10 else []
        snapshot = Snapshot(
            now_s=start_s + 60.0 * number,
            nodes=(make_node(free=0 if number < 50 else 4),),
            demands=tuple(waits),
            offers=(make_offer(),),
        )
        while files._queue.full():
            pass
        files.note(snapshot, PARAMS, decide(snapshot, PARAMS))
    files.close()
    return folder


def forge(folder: Path) -> None:
    """Make it a record of decisions that this program would not make."""
    (path,) = folder.iterdir()
    head, *lines = gzip.decompress(path.read_bytes()).splitlines()
    changed = [json.loads(line) for line in lines]
    for fields in changed:
        fields["plan"]["actions"] = []
    text = b"\n".join([head, *(json.dumps(fields).encode() for fields in changed), b""])
    path.write_bytes(gzip.compress(text))


def test_replay_says_that_all_come_out_the_same(run: Run, tmp_path: Path) -> None:
    done = run("sim", "replay", str(write(tmp_path / "decisions")))

    assert done.code == 0, done.err
    assert "from 2027-01-15 08:00:00Z to 2027-01-15 08:55:00Z: all come out the same." in done.out


def test_replay_of_other_decisions_ends_with_1_and_shows_them(run: Run, tmp_path: Path) -> None:
    forge(write(tmp_path / "decisions"))

    done = run("sim", "replay", str(tmp_path / "decisions"))

    assert done.code == ExitCode.FAILED
    assert "come out otherwise." in done.out
    assert "nothing" in done.out
    assert "launch a" in done.out
    assert "queue_wait: " in done.out


def test_what_if_shows_the_other_decisions_and_ends_with_0(run: Run, tmp_path: Path) -> None:
    folder = str(write(tmp_path / "decisions"))

    done = run("sim", "replay", folder, "--set", "max_wait=1h")

    assert done.code == 0, done.err
    assert "launch a" in done.out
    assert "what another one would have led to is not in the next" in done.out


def test_replay_json_has_the_documented_shape(run: Run, tmp_path: Path) -> None:
    folder = str(write(tmp_path / "decisions"))

    done = run("sim", "replay", folder, "--set", "caps.node_count=0", "--json")

    view = ReplayView.model_validate(json.loads(done.out))
    assert view.changes == {"caps.node_count": "0"}
    assert view.decisions > view.same > 0
    assert view.differences[0].recorded == ("launch a",)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none",), "there is no none; a controller keeps its decisions"),
        (("decisions", "--set", "max_wait"), "write NAME=VALUE"),
        (("decisions", "--set", "speed=9"), "no parameter 'speed'"),
    ],
)
def test_replay_refuses_what_it_cannot_use(
    run: Run, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    write(tmp_path / "decisions")

    done = run("sim", "replay", *words)

    assert done.code == ExitCode.USAGE
    assert said in done.err


def job(job_id: str, gpus: float, *, from_s: float, length_s: float) -> Job:
    return Job(
        job_id=job_id,
        spec=JobSpec(entrypoint="x", gpus=gpus, user="ada"),
        state=JobState.SUCCEEDED,
        created_at_s=from_s - 60,
        state_at_s=from_s,
        started_at_s=from_s,
        ended_at_s=from_s + length_s,
    )


def test_record_writes_what_the_ledger_and_the_record_know(
    lab: Lab, run: Run, tmp_path: Path
) -> None:
    now_s = canned.NOW_S
    lab.service._jobs.clear()
    lab.service._jobs["j-1"] = job("j-1", 2, from_s=now_s - 7_200, length_s=600)
    write(lab.state_dir / FOLDER, start_s=now_s - 86_400)
    out = tmp_path / "mine.csv.gz"

    done = run("trace", "record", "--out", str(out))

    assert done.code == 0, done.err
    assert "2 jobs of 2 users" in done.out
    assert "1 kept: ran when the record begins (or begins again); counted from there" in done.out
    assert "Work that only Ray knew is in it for the last 1d" in done.err
    shown = TraceView.model_validate(json.loads(run("trace", "show", str(out), "--json").out))
    assert shown.jobs is not None
    assert shown.jobs.classes == ("batch", "ray")
    simulated = run("sim", "run", "--trace", str(out), "--gpus", "4")
    assert simulated.code == 0, simulated.err


def test_record_without_a_record_says_what_is_not_in_it(lab: Lab, run: Run, tmp_path: Path) -> None:
    lab.service._jobs["j-1"] = job("j-1", 2, from_s=canned.NOW_S - 7_200, length_s=600)

    done = run("trace", "record", "--out", str(tmp_path / "x.csv"), "--since", "1d", "--json")

    assert done.code == 0, done.err
    assert TraceView.model_validate(json.loads(done.out)).kind == "jobs"
    assert "is not in it: no decisions of that time are recorded on this machine" in done.err


def test_record_of_nothing_is_refused(lab: Lab, run: Run, tmp_path: Path) -> None:
    lab.service._jobs.clear()

    done = run("trace", "record", "--out", str(tmp_path / "x.csv"))

    assert done.code == ExitCode.USAGE
    assert "give a longer --since" in done.err
    assert not (tmp_path / "x.csv").exists()


def test_record_needs_a_running_cluster(run: Run, tmp_path: Path) -> None:
    done = run("trace", "record", "--out", str(tmp_path / "x.csv"))

    assert done.code == ExitCode.NO_CLUSTER
