"""Fixtures for the simulated world."""

from __future__ import annotations

from tests.world.fixtures import fast_path, quiet_log

__all__ = ["fast_path", "quiet_log"]
