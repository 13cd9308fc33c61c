"""A local cloud for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.local_cloud import LocalCloud, local_cloud


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[LocalCloud]:
    with local_cloud(tmp_path / "local") as made:
        yield made
