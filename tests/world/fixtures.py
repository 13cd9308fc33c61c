"""Fixtures for the simulated world."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import structlog

from tests.world.ledgers import fast_folder

Count: TypeAlias = Callable[[int], None]
HISTORIES = pytest.StashKey[int]()


@pytest.fixture
def count_histories(pytestconfig: pytest.Config) -> Count:
    """Add to the number of histories that the end of the run tells."""

    def count(number: int) -> None:
        stash = pytestconfig.stash
        stash[HISTORIES] = stash.get(HISTORIES, 0) + number

    return count


def tell_histories(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell how many histories the run has played."""
    number = config.stash.get(HISTORIES, 0)
    if number:
        reporter.write_line(f"{number} histories of crashes and faults were played")


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
