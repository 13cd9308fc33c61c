"""A controller's record, played again: the same, what if, and what is wrong with a file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hybrid
from hybrid.adapters.decision_files import DecisionFiles
from hybrid.core.errors import ConfigError
from hybrid.core.models import JobSpec
from hybrid.core.policy.record import RECORD_VERSION
from hybrid.sim.recorded.reading import RecordFiles
from hybrid.sim.recorded.replay import ReplayView, replay
from hybrid.sim.traces.reading import TraceError
from tests.world.quick import quick_params
from tests.world.world import SECRET, World

PASSWORD = "hunter2-in-the-environment"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of a whole burst of the simulated world, with the real loop and ledger."""
    folder = tmp_path_factory.mktemp("world")
    world = World(folder, params=quick_params())
    files = DecisionFiles(
        folder / "decisions", version=hybrid.__version__, kept_s=86_400.0, pause_s=0.0
    )
    world.loop.recorder = files
    spec = JobSpec(entrypoint="python train.py", gpus=2, env={"TOKEN": PASSWORD})
    world.desk.submit(spec)
    world.ray.submit(12, {"GPU": 1.0}, 60.0)
    world.ray.submit_gang("g", 2, {"GPU": 4.0}, 30.0)
    for number in range(400):
        if number == 200:
            world.ray.submit(20, {"GPU": 2.0}, 45.0)
        world.step()
        while files._queue.qsize() > 4:  # in this world no time passes between two ticks
            pass
    files.close()
    world.ledger.close()
    return folder / "decisions"


def again(path: Path, **changes: str) -> ReplayView:
    changes = {key.replace("__", "."): text for key, text in changes.items()}
    return replay(RecordFiles.at(path), str(path), changes)


def lines(record: Path) -> list[bytes]:
    (path,) = record.iterdir()
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


@pytest.fixture
def edited(record: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a way to write the record anew, changed."""

    def write(change: Callable[[list[bytes]], list[bytes]]) -> Path:
        path = tmp_path / "changed.jsonl"
        path.write_bytes(b"".join(change(lines(record))))
        return path

    return write


def test_a_controllers_record_replays_the_same(record: Path) -> None:
    view = again(record)

    assert view.decisions > 20
    assert view.same == view.decisions
    assert (view.differences, view.skipped, view.more) == ((), (), 0)
    assert view.hybrid == (hybrid.__version__,)
    kinds = {
        action["kind"]
        for line in lines(record)[1:]
        for action in json.loads(line)["plan"]["actions"]
    }
    assert kinds >= {"launch", "drain"}


def test_no_secret_is_in_it(record: Path) -> None:
    text = b"".join(lines(record))

    for secret in (PASSWORD.encode(), SECRET, SECRET.hex().encode(), b"ray-token"):
        assert secret not in text


def test_a_what_if_says_what_would_have_been_decided(record: Path) -> None:
    view = again(record, max_wait="2h")

    assert not view.is_same
    first = view.differences[0]
    assert first.recorded[0] == "2 x launch sim/a4 together"
    assert first.now == ()
    assert first.reasons[0].startswith("within_limit: ")
    assert view.changes == {"max_wait": "2h"}


def test_caps_can_be_changed_too(record: Path) -> None:
    view = again(record, caps__node_count="0")

    assert {row.now for row in view.differences if "launch" in str(row.recorded)} == {()}
    assert "cap" in view.differences[0].reasons[0]


def test_a_change_that_changes_nothing_is_no_difference(record: Path) -> None:
    assert again(record, unhealthy_ratio="0.3").is_same


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("max_wiat", "1h", "no parameter 'max_wiat'; it has max_wait_s"),
        ("caps__gpus", "1", "no parameter 'gpus'; it has node_count, gpu_count"),
        ("max_wait", "soon", "max_wait: "),
        ("jobs", "1", "jobs has values of its own; set one of jobs."),
        ("busy_drain", "never", "busy_drain is never"),
    ],
)
def test_a_wrong_change_is_refused_with_its_name(
    record: Path, name: str, text: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        again(record, **{name: text})

    assert said in str(caught.value)


def test_a_plan_that_was_changed_is_a_difference(edited: Callable[..., Path]) -> None:
    def without_actions(found: list[bytes]) -> list[bytes]:
        for number, line in enumerate(found[1:], start=1):
            fields = json.loads(line)
            if any(action["kind"] == "launch" for action in fields["plan"]["actions"]):
                fields["plan"]["actions"] = []
                found[number] = json.dumps(fields).encode() + b"\n"
                return found
        raise AssertionError("no action")

    view = again(edited(without_actions))

    assert view.decisions - view.same == 1
    assert view.differences[0].recorded == ()
    assert "launch sim/a4" in view.differences[0].now[0]


def test_a_snapshot_that_was_changed_is_found_out_by_its_hash(edited: Callable[..., Path]) -> None:
    view = again(
        edited(lambda found: [*found[:1], found[1].replace(b'"GPU":4.0', b'"GPU":5.0'), *found[2:]])
    )

    assert view.is_same
    assert [(each.reason, each.first_lines) for each in view.skipped] == [
        ("changed.jsonl: it was changed after it was recorded: its hash differs", (2,))
    ]


def test_a_damaged_line_is_counted_and_the_rest_is_read(
    record: Path, edited: Callable[..., Path]
) -> None:
    view = again(edited(lambda found: [*found[:3], found[3][:40] + b"\n", *found[4:]]))

    assert view.decisions == len(lines(record)) - 2
    assert view.is_same
    assert view.skipped[0].first_lines == (4,)
    assert "it is damaged" in view.skipped[0].reason


def test_a_file_that_was_cut_off_is_read_up_to_there(record: Path, tmp_path: Path) -> None:
    (whole,) = record.iterdir()
    packed = whole.read_bytes()
    cut = tmp_path / whole.name
    cut.write_bytes(packed[: len(packed) * 2 // 3])

    view = again(cut)

    assert 0 < view.decisions < len(lines(record)) - 1
    assert view.is_same
    assert "the file has no end: it is still written, or a crash cut it off" in str(view.skipped)


def test_damage_in_a_packed_file_costs_the_rest_of_that_file_only(
    record: Path, tmp_path: Path
) -> None:
    (whole,) = record.iterdir()
    packed = bytearray(whole.read_bytes())
    middle = len(packed) // 2
    packed[middle : middle + 64] = bytes(64)
    (tmp_path / "a.jsonl.gz").write_bytes(packed)
    (tmp_path / "b.jsonl.gz").write_bytes(whole.read_bytes())

    view = again(tmp_path)

    assert view.decisions >= len(lines(record)) - 1
    assert view.is_same
    assert any(each.reason.startswith("a.jsonl.gz: ") for each in view.skipped)


@pytest.mark.parametrize("by", [-1, 1], ids=["older", "newer"])
def test_a_record_of_another_form_says_which_hybrid_reads_it(
    edited: Callable[..., Path], by: int
) -> None:
    def other(found: list[bytes]) -> list[bytes]:
        head = {**json.loads(found[0]), "version": RECORD_VERSION + by, "hybrid": "9.1"}
        return [json.dumps(head).encode() + b"\n", *found[1:]]

    with pytest.raises(TraceError) as caught:
        again(edited(other))

    assert f"recorded by hybrid 9.1 in form {RECORD_VERSION + by}" in str(caught.value)
    assert "use hybrid 9.1 for it" in str(caught.value)


def test_a_record_from_before_a_field_came_is_read_and_decided_alike(
    edited: Callable[..., Path],
) -> None:
    """Such as `why_now` of waiting work: what is not there has its default, and the hash holds."""

    def older(found: list[bytes]) -> list[bytes]:
        decisions = []
        for line in found[1:]:
            decision = json.loads(line)
            dropped = [
                demand.pop("why_now")
                for gang in (
                    {"bundles": decision["snapshot"]["demands"]},
                    *decision["snapshot"]["gangs"],
                )
                for demand in gang["bundles"]
            ]
            assert not any(dropped)
            decisions.append(json.dumps(decision).encode() + b"\n")
        return [found[0], *decisions]

    view = again(edited(older))

    assert view.decisions > 20
    assert view.same == view.decisions
    assert view.skipped == ()


def test_lines_with_what_only_a_newer_hybrid_knows_are_counted(edited: Callable[..., Path]) -> None:
    def newer(found: list[bytes]) -> list[bytes]:
        head = {**json.loads(found[0]), "hybrid": "9.1"}
        line = json.loads(found[1])
        line["snapshot"]["weather"] = "rain"
        return [json.dumps(head).encode() + b"\n", json.dumps(line).encode() + b"\n", *found[2:]]

    view = again(edited(newer))

    assert view.is_same
    assert view.decisions > 20
    reason = view.skipped[0].reason
    assert reason == "changed.jsonl: it does not fit this hybrid (9.1 wrote it)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"submit_s,duration_s,gpus\n1,2,3\n", "line 1: this is no record of decisions"),
        (b'{"kind": "decision"}\n', "line 1: this is no record of decisions"),
        (b"[1]\n", "line 1: this is no record of decisions"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(text)

    with pytest.raises(TraceError, match=said):
        again(path)


def test_no_file_and_an_empty_folder_say_where_records_are(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"unless controller\.record is off"):
        again(tmp_path / "none")
    with pytest.raises(TraceError, match="name the folder decisions of a state folder"):
        again(tmp_path)


def test_a_file_without_a_line_has_no_decision(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b"")[:10])

    view = again(path)

    assert (view.decisions, view.from_at_s) == (0, None)
