"""The example of a training, as the wrapper runs it; without Ray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TRAIN = Path(__file__).parents[2] / "examples" / "train" / "train.py"


def train(tmp_path: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, **env, "PYTHONPATH": str(TRAIN.parents[2])}
    command = [sys.executable, str(TRAIN), "--steps", "40", *arguments]
    return subprocess.run(
        command, env=given, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )


@pytest.mark.slow
def test_it_saves_when_asked_and_goes_on_to_the_same_end(tmp_path: Path) -> None:
    notes, folder = tmp_path / "notes", tmp_path / "saved"
    notes.mkdir()
    (notes / "ask").write_text(json.dumps({"why": "move", "by_s": 0.0}))
    job = {
        "HYBRID_JOB_ID": "j-1",
        "HYBRID_ATTEMPT": "1",
        "HYBRID_CHECKPOINT_URL": folder.as_uri(),
        "HYBRID_NOTES_DIR": str(notes),
    }

    alone = train(tmp_path, "--step-seconds", "0")
    first = train(tmp_path, "--step-seconds", "0", **job)
    saved = json.loads((notes / "saved").read_text())
    (notes / "ask").unlink()
    job |= {"HYBRID_ATTEMPT": "2", "HYBRID_RESUME_FROM": saved["url"]}
    second = train(tmp_path, "--step-seconds", "0", **job)

    assert first.returncode == 75, first.stderr
    assert 0 < saved["step"] < 40
    assert f"begins at step {saved['step']}" in second.stdout
    assert second.returncode == 0
    assert second.stdout.splitlines()[-1] == alone.stdout.splitlines()[-1]


@pytest.mark.slow
def test_a_target_that_takes_nothing_ends_no_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "ask").write_text(json.dumps({"why": "move", "by_s": 0.0}))
    job = {
        "HYBRID_JOB_ID": "j-1",
        "HYBRID_CHECKPOINT_URL": str(tmp_path / "file" / "below"),
        "HYBRID_NOTES_DIR": str(tmp_path),
    }

    done = train(tmp_path, "--step-seconds", "0", **job)

    assert done.returncode == 0
    assert "cannot save" in done.stdout
    assert not (tmp_path / "saved").exists()
