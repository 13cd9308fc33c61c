"""Data comes before the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid.job import wrapper
from tests.job.conftest import Memory


@pytest.fixture
def run(
    memory: Memory, handlers: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Path], int]:
    def run(source: Path) -> int:
        monkeypatch.setenv("HYBRID_DATA_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HYBRID_DATA_PATH_0", "")
        monkeypatch.setenv("HYBRID_DATA", json.dumps([[str(source), ""]]))
        monkeypatch.setenv("HYBRID_ENTRYPOINT", f'cp "$HYBRID_DATA_PATH_0" {tmp_path}/read')
        return wrapper.main()

    return run


def test_the_command_reads_a_copy_on_its_node(run: Callable[[Path], int], tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"data")
    assert run(tmp_path / "a") == 0
    assert (tmp_path / "read").read_bytes() == b"data"


def test_without_its_data_it_does_not_start(
    run: Callable[[Path], int], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "none") == 1
    assert "cannot be copied" in capfd.readouterr().err
    assert not (tmp_path / "read").exists()
