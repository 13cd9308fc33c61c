"""Files of decisions: what is written, how much of it, and what trouble costs."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.adapters import decision_files
from hybrid.adapters.decision_files import DecisionFiles
from hybrid.core.policy.decide import decide
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Plan, Snapshot
from hybrid.core.policy.record import Decision, RecordHead
from tests.core.make import make_demand, make_node, make_offer

PARAMS = PolicyParams(max_wait_s=0.0, stabilisation_s=0.0)
START_S = 1_800_000_000.0


def idle(at_s: float, *, idle_s: float = 1.0) -> Snapshot:
    return Snapshot(now_s=START_S + at_s, nodes=(make_node(idle_s=idle_s),), tick_id=int(at_s))


def starved(at_s: float) -> Snapshot:
    demand = make_demand(gpus=4, count=3, waiting_s=600.0)
    return Snapshot(now_s=START_S + at_s, demands=(demand,), offers=(make_offer(),))


def keep(files: DecisionFiles, *snapshots: Snapshot, params: PolicyParams = PARAMS) -> None:
    for snapshot in snapshots:
        while files._queue.full():
            pass
        files.note(snapshot, params, decide(snapshot, params))


def lines(folder: Path) -> list[Iterator[str]]:
    return [
        iter(gzip.open(path, "rt", encoding="utf-8").read().splitlines())
        for path in sorted(folder.iterdir())
    ]


def decisions(folder: Path) -> list[Decision]:
    found = []
    for file in lines(folder):
        RecordHead.model_validate_json(next(file))
        found += [Decision.model_validate_json(line) for line in file]
    return found


def make(folder: Path, **more: float) -> DecisionFiles:
    values = {"kept_s": 86_400.0, "pause_s": 0.0, **more}
    return DecisionFiles(folder, version="0.1.0", **values)  # type: ignore[arg-type]


def test_a_decision_is_kept_with_what_it_saw_and_what_it_was_made_with(tmp_path: Path) -> None:
    files, seen = make(tmp_path / "d"), starved(0)
    keep(files, seen)
    files.close()

    (file,) = lines(tmp_path / "d")
    head = RecordHead.model_validate_json(next(file))
    kept = Decision.model_validate_json(next(file))
    assert head.params == PARAMS
    assert (kept.snapshot, kept.plan) == (seen, decide(seen, PARAMS))
    assert [action.kind for action in kept.plan.actions] == ["launch"] * 3


def test_what_differs_in_clocks_only_is_kept_now_and_then(tmp_path: Path) -> None:
    files = make(tmp_path)
    keep(files, *(idle(at_s, idle_s=at_s) for at_s in range(0, 900, 5)))
    files.close()

    assert [kept.snapshot.now_s - START_S for kept in decisions(tmp_path)] == [0, 300, 600]


def test_what_rays_object_store_holds_is_no_news(tmp_path: Path) -> None:
    files = make(tmp_path)
    for number in range(5):
        node = make_node(object_store_memory=1e9)
        free = {**node.available, "object_store_memory": 1e9 - number}
        keep(files, Snapshot(now_s=number, nodes=(node.model_copy(update={"available": free}),)))
    files.close()

    assert len(decisions(tmp_path)) == 1


def test_news_and_actions_are_always_kept(tmp_path: Path) -> None:
    files = make(tmp_path)
    keep(files, idle(0), starved(5), starved(10), idle(15), idle(20))
    files.close()

    assert [kept.snapshot.now_s - START_S for kept in decisions(tmp_path)] == [0, 5, 10, 15]


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    files = make(tmp_path / "d")
    keep(files, idle(0))
    files.close()

    (path,) = (tmp_path / "d").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700


def test_other_parameters_begin_another_file(tmp_path: Path) -> None:
    files = make(tmp_path)
    keep(files, starved(0))
    keep(files, starved(5), params=PARAMS.model_copy(update={"launches_per_tick": 1}))
    files.close()

    heads = [RecordHead.model_validate_json(next(file)) for file in lines(tmp_path)]
    assert [head.params.launches_per_tick for head in heads] == [10, 1]


def test_old_files_go_and_a_file_is_never_older_than_a_quarter_of_a_day(tmp_path: Path) -> None:
    files = make(tmp_path)
    keep(files, *(starved(3_600.0 * hour) for hour in range(72)))
    files.close()

    assert len(list(tmp_path.iterdir())) <= 6
    kept = [each.snapshot.now_s for each in decisions(tmp_path)]
    assert kept[-1] == START_S + 71 * 3_600
    assert kept[0] >= kept[-1] - 86_400 - 2 * 21_600


def test_all_files_together_stay_below_their_limit(tmp_path: Path) -> None:
    files = make(tmp_path, kept_bytes=8_000, part_bytes=2_000)
    keep(files, *(starved(5.0 * number) for number in range(500)))
    files.close()

    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 8_000
    assert decisions(tmp_path)[-1].snapshot.now_s == START_S + 5 * 499


def test_what_was_written_is_there_after_a_kill(tmp_path: Path) -> None:
    """No end of the gzip stream was ever written."""
    keep(files := make(tmp_path), starved(0))
    while not any(path.stat().st_size > 600 for path in tmp_path.iterdir()):
        pass
    (path,) = tmp_path.iterdir()
    shutil.copy(path, tmp_path / "copy")

    with gzip.open(tmp_path / "copy", "rt", encoding="utf-8") as file:
        assert json.loads(file.readline())["kind"] == "head"
        assert json.loads(file.readline())["kind"] == "decision"
    files.close()


def test_a_full_disk_is_said_once_and_recording_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    files = DecisionFiles(tmp_path, version="0.1.0", kept_s=86_400, pause_s=0, tell=said.append)
    free = [0]
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free[0]))
    keep(files, *(starved(5.0 * number) for number in range(40)))
    while files._queue.qsize():
        pass
    free[0] = decision_files.FREE_BYTES
    keep(files, starved(400), starved(405))
    files.close()

    assert said == [f"{tmp_path}: less than 512 MiB are free on its disk"]
    kept = [each.snapshot.now_s - START_S for each in decisions(tmp_path)]
    assert kept[-2:] == [400, 405]
    assert set(kept[:-2]) <= {195}, "it is tried again once in a minute"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_write_that_fails_costs_the_record_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that answers "no space left" for real."""
    said: list[str] = []
    files = DecisionFiles(tmp_path, version="0.1.0", kept_s=86_400, pause_s=0, tell=said.append)
    monkeypatch.setattr(decision_files, "_fresh", lambda *_: os.open("/dev/full", os.O_WRONLY))

    keep(files, starved(0), starved(5))
    files.close()

    assert said == [f"{tmp_path}: No space left on device"]


def test_a_disk_that_hangs_holds_up_no_tick_and_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    files = make(tmp_path)
    monkeypatch.setattr(DecisionFiles, "_keep", lambda *_: gate.wait(60))

    for number in range(100):
        files.note(starved(number), PARAMS, Plan())
    files.close(limit_s=0.01)

    assert files._queue.qsize() <= 8
    gate.set()
