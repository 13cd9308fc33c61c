"""Fixtures that many tests share."""

from __future__ import annotations

from tests.ray_cluster import local_ray

__all__ = ["local_ray"]
