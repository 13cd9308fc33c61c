"""Records of controllers: which are alive, and which only seem to be."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hybrid.client.discover import process_mark, read_record
from tests.running import dead_pid, write_record


def write(folder: Path, *, pid: int, **more: object) -> None:
    write_record(folder, url="http://127.0.0.1:1", pid=pid)
    path = folder / "controller.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))


def is_alive(folder: Path) -> bool:
    record = read_record(folder)
    assert record is not None
    return record.is_alive


def test_a_record_of_a_live_process_is_alive(tmp_path: Path) -> None:
    write(tmp_path, pid=os.getpid(), **process_mark(os.getpid()))

    assert is_alive(tmp_path)


def test_a_record_of_an_older_program_has_its_number_only(tmp_path: Path) -> None:
    write(tmp_path, pid=os.getpid())

    assert is_alive(tmp_path)


def test_a_record_of_a_process_that_is_gone_is_dead(tmp_path: Path) -> None:
    write(tmp_path, pid=dead_pid(), **process_mark(os.getpid()))

    assert not is_alive(tmp_path)


@pytest.mark.parametrize("other", [{"start_time": 1}, {"boot_id": "of-the-boot-before"}])
def test_a_record_whose_number_another_process_got_is_dead(
    tmp_path: Path, other: dict[str, object]
) -> None:
    write(tmp_path, pid=os.getpid(), **{**process_mark(os.getpid()), **other})

    assert not is_alive(tmp_path)


def test_a_process_that_is_gone_has_no_mark() -> None:
    assert process_mark(dead_pid()) == {}
