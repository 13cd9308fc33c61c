"""Ray: its state, the drain, and its jobs. Only this package knows how Ray is spoken to."""

from __future__ import annotations

from hybrid.adapters.ray.cluster import RayCluster
from hybrid.adapters.ray.jobs import RayJobs

__all__ = ["RayCluster", "RayJobs"]
