"""Fixtures for the simulated world."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.world.ledgers import fast_folder


@pytest.fixture
def fast_path() -> Iterator[Path]:
    """A folder in memory, so that thousands of commits cost no disk time."""
    with fast_folder() as folder:
        yield folder


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    """The ledger's events tell more than the log, and printing it costs half of the time."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()
