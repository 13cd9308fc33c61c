"""Temporary folders: ours are made and removed, nothing else ever is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.node import scratch


@pytest.fixture
def root() -> Iterator[Path]:
    path = Path(f"/tmp/hybrid-test-scratch-{os.getpid()}")
    yield path
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        path.rmdir()


def test_a_folder_is_made_for_its_user_only_and_removed_with_its_parent(root: Path) -> None:
    folder = root / "cluster" / "node"
    scratch.prepare(folder)
    (folder / "sockets").mkdir()
    (folder / "sockets" / "x").touch()
    modes = [path.stat().st_mode & 0o777 for path in (root, folder)]

    scratch.remove(folder)

    assert modes == [0o700, 0o700]
    assert not folder.parent.exists()


def test_the_folder_above_stays_while_another_node_is_in_it(root: Path) -> None:
    one, two = root / "cluster" / "one", root / "cluster" / "two"
    scratch.prepare(one)
    scratch.prepare(two)

    scratch.remove(one)

    assert two.exists()
    scratch.remove(two)


def test_nothing_elsewhere_is_ever_removed(root: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    around = root / ".." / ".." / str(precious).lstrip("/")

    for folder in (precious, root / "link" / "precious", around, root, Path("/tmp/hybrid-")):
        scratch.remove(folder)

    assert precious.exists()
    (root / "link").unlink()


def test_a_top_folder_that_is_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    root.symlink_to(tmp_path)

    with pytest.raises(OSError, match="not a folder of this user"):
        scratch._make(root)


def test_a_folder_that_is_not_there_is_removed_already(root: Path) -> None:
    scratch.remove(root / "a" / "b")
