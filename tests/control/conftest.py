"""Fixtures for the simulated world."""

from __future__ import annotations

import pytest

from tests.world.fixtures import count_histories, fast_path, quiet_log, tell_histories

__all__ = ["count_histories", "fast_path", "quiet_log"]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    tell_histories(terminalreporter, config)
