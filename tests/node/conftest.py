"""Nodes in folders of their own, one fixture for each role."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.box import Box, box


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Box]:
    with box(tmp_path / "i-1") as made:
        yield made


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Box]:
    with box(tmp_path / "host", role="host") as made:
        yield made


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Box]:
    with box(tmp_path / "head", role="head") as made:
        made.write(command=[*made.orders["command"], "--head"])  # type: ignore[misc]
        yield made
