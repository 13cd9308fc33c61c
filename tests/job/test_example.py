"""The training of examples/train, under the wrapper and without a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hybrid.job import messages, wrapper
from tests.job.conftest import Memory

pytestmark = pytest.mark.slow

TRAIN = Path(__file__).parents[2] / "examples" / "train" / "train.py"


@pytest.fixture
def folder(memory: Memory, handlers: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HYBRID_ENTRYPOINT", f"{sys.executable} {TRAIN} --steps 130 --seconds 0.01")
    monkeypatch.setenv("HYBRID_CHECKPOINT_URL", str(tmp_path / "saved"))
    return tmp_path / "saved"


def test_a_training_that_was_interrupted_ends_where_one_that_was_not_does(
    folder: Path,
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert wrapper.main() == 0
    whole = capfd.readouterr().out.splitlines()

    memory.notes = {messages.ask_key("j-1", 2): messages.encode({"why": "move", "by_s": 1.0})}
    assert wrapper.main() == 75
    saved = messages.parse_saved(memory.notes[messages.saved_key("j-1", 2)])
    assert saved is not None
    assert saved.step is not None
    assert 0 < saved.step < 130
    assert Path(saved.url).parent == folder
    assert "saved, since it was asked to" in capfd.readouterr().out

    monkeypatch.setenv("HYBRID_RESUME_FROM", saved.url)
    monkeypatch.setenv("HYBRID_ATTEMPT", "3")
    assert wrapper.main() == 0
    parted = capfd.readouterr().out.splitlines()
    assert parted[0].startswith(f"attempt 3 begins after step {saved.step},")
    assert parted[-1] == whole[-1]


def test_a_training_that_cannot_save_goes_on_and_confirms_nothing(
    folder: Path, memory: Memory, capfd: pytest.CaptureFixture[str]
) -> None:
    folder.write_text("a file where a folder should be, as good as a full disk")
    memory.notes = {messages.ask_key("j-1", 2): messages.encode({"why": "move", "by_s": 1.0})}
    assert wrapper.main() == 0
    assert messages.saved_key("j-1", 2) not in memory.notes
    out = capfd.readouterr().out
    assert "not saved, going on" in out
    assert out.splitlines()[-1].startswith("done after step 130")
