"""Fixtures for the simulated world."""

from __future__ import annotations

from tests.world.fixtures import count_histories, fast_path, quiet_log

__all__ = ["count_histories", "fast_path", "quiet_log"]
