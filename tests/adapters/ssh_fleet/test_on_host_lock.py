"""Whoever changes files of a host has them alone, also while the last of them are removed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hybrid.adapters.ssh_fleet.on_host import node


def test_those_who_come_and_go_never_meet_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "files"
    monkeypatch.setattr(node, "_ROOT", root)
    alone, met = threading.Lock(), []

    def come_and_go(number: int) -> None:
        for _ in range(100):
            with node._locked():
                if not alone.acquire(blocking=False):
                    met.append(number)
                    continue
                (root / "nodes" / str(number)).mkdir(parents=True)
                (root / "nodes" / str(number)).rmdir()
                alone.release()  # the very last step lets the next one in
                node._tidy()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(come_and_go, range(8)))

    assert met == []
    assert not root.exists()


def test_a_home_that_cannot_hold_our_files_is_told_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for place, words in (
        ("file", "is not a folder"),
        ("link", "is not a folder"),
        ("none/files", "the home folder .* is not there"),
    ):
        monkeypatch.setattr(node, "_ROOT", tmp_path / place)
        with pytest.raises(SystemExit, match=words), node._locked():
            pass
