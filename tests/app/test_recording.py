"""`controller.record` reaches the loop, and what waits is written when the controller ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.decision_files import FOLDER
from hybrid.adapters.ledger import open_ledger, sqlite_url
from hybrid.adapters.state import StateFolder
from hybrid.app.base import LocalBase
from hybrid.app.compose import make_controller
from hybrid.core.policy.plan import Plan, Snapshot
from hybrid.settings import load
from hybrid.sim.recorded.reading import RecordFiles


def record_of(tmp_path: Path, line: str) -> Path:
    """Let a controller, of which nothing is started, note one decision and end."""
    file = tmp_path / "hybrid.yaml"
    file.write_text(f"name: lab\nstate_dir: {tmp_path}/state\n{line}\n", encoding="utf-8")
    settings = load(file, {"HOME": str(tmp_path)})
    state = StateFolder(settings.state_path)
    state.open()
    controller = make_controller(
        settings,
        state,
        LocalBase(settings, state),
        ledger=open_ledger(sqlite_url(state.path / "ledger.db"), cluster_id=""),
        providers=[],
        url="http://127.0.0.1:1",
        clock=SystemClock(),
    )
    loop = controller.runner.loop
    loop.recorder.note(Snapshot(now_s=1_800_000_000.0), loop.params.policy, Plan())
    controller.close()
    state.close()
    return state.path / FOLDER


def test_decisions_are_recorded_unless_it_is_off(tmp_path: Path) -> None:
    (recorded,) = RecordFiles.at(record_of(tmp_path, "")).each()

    assert recorded.decision.snapshot.now_s == 1_800_000_000.0


@pytest.mark.parametrize("line", ["controller: {record: off}", "controller: {record: 'off'}"])
def test_off_writes_nothing(tmp_path: Path, line: str) -> None:
    assert not record_of(tmp_path, line).exists()
