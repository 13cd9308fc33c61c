"""What a training calls: harmless outside of hybrid, and whatever happens to disk and head."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.job import checkpoint, messages
from hybrid.job.context import NOTES
from tests.job.conftest import Memory

ASK, SAVED = messages.ask_key("j-1", 2), messages.saved_key("j-1", 2)


def ask(why: str = "move") -> bytes:
    return messages.encode({"why": why, "by_s": 1.0})


def look() -> bool:
    """Ask as after a second."""
    checkpoint._memory.looked_at_s = -1e9
    return hybrid.checkpoint_requested()


def told(raw: bytes) -> tuple[str, int | None]:
    found = messages.parse_saved(raw)
    assert found is not None
    return found.url, found.step


def test_outside_of_a_job_nothing_is_asked_and_nothing_told() -> None:
    assert not hybrid.checkpoint_requested()
    assert hybrid.checkpoint_url() is None
    assert hybrid.resume_from() is None
    hybrid.checkpoint_saved("s3://a/b", step=1)


def test_leaving_has_an_exit_code_of_its_own() -> None:
    with pytest.raises(SystemExit) as left:
        hybrid.checkpoint_exit()
    assert left.value.code == 75


def test_a_job_knows_its_folder_and_where_to_go_on(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hybrid.checkpoint_url() == "/saved/j-1"
    assert hybrid.resume_from() is None
    monkeypatch.setenv("HYBRID_RESUME_FROM", "/saved/j-1/5")
    assert hybrid.resume_from() == "/saved/j-1/5"


def test_a_request_comes_through_the_store_and_may_be_withdrawn(memory: Memory) -> None:
    assert not look()
    memory.notes[ASK] = ask()
    assert look()
    memory.notes[ASK] = ask("withdrawn")
    assert not look()
    memory.notes[ASK] = b"garbage"
    assert not look()


def test_a_tight_loop_looks_once_a_second(memory: Memory) -> None:
    memory.notes[ASK] = ask()
    assert all(hybrid.checkpoint_requested() for _ in range(1_000))
    assert memory.get_count == 1


def test_beside_the_wrapper_notes_are_files(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(NOTES, str(tmp_path))
    assert not look()
    (tmp_path / "ask").write_bytes(ask())
    assert look()
    hybrid.checkpoint_saved("/saved/j-1/9", step=9)
    assert told((tmp_path / "saved").read_bytes()) == ("/saved/j-1/9", 9)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ask", "saved"]
    assert (memory.notes, memory.get_count) == ({}, 0)


def test_without_a_place_the_job_s_folder_is_meant(memory: Memory) -> None:
    hybrid.checkpoint_saved()
    assert told(memory.notes[SAVED]) == ("/saved/j-1", None)


def test_paths_and_numbers_of_other_libraries_are_taken(memory: Memory) -> None:
    class Tensor:
        def __int__(self) -> int:
            return 12

    place: Any = Path("/saved/j-1/12")
    step: Any = Tensor()
    hybrid.checkpoint_saved(place, step=step)
    assert told(memory.notes[SAVED]) == ("/saved/j-1/12", 12)


def test_an_address_that_the_controller_would_refuse_is_refused_here(memory: Memory) -> None:
    with pytest.raises(ValueError, match="more than 2000: confirm a shorter one"):
        hybrid.checkpoint_saved("x" * 2_001)


def test_while_the_head_is_away_the_work_goes_on_and_the_checkpoint_is_told_later(
    memory: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.notes[ASK] = ask()
    assert look()
    memory.is_away = True
    assert look(), "what was known stays known"
    hybrid.checkpoint_saved("/saved/j-1/3", step=3)
    hybrid.checkpoint_saved("/saved/j-1/4", step=4)
    assert look()
    assert capsys.readouterr().err.count("cannot reach Ray's head") == 1

    memory.is_away = False
    assert look()
    assert told(memory.notes[SAVED]) == ("/saved/j-1/4", 4)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_on_a_full_disk_the_checkpoint_is_told_without_a_file(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(NOTES, str(tmp_path))
    monkeypatch.setattr("hybrid.job.checkpoint.threading.get_ident", lambda: 1)
    (tmp_path / f"saved.{os.getpid()}.1").symlink_to("/dev/full")
    hybrid.checkpoint_saved(step=4)
    assert not (tmp_path / "saved").exists()
    assert json.loads(memory.notes[SAVED])["step"] == 4
