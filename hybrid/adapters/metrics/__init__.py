"""Latencies of services: from Ray Serve's own metrics, or from any Prometheus query.

Imports neither Ray nor pydantic, since Serve's controller uses it too (`hybrid.serve`).
"""

from __future__ import annotations

from hybrid.adapters.metrics.fetch import UnreadableError
from hybrid.adapters.metrics.prometheus import PrometheusQuery
from hybrid.adapters.metrics.serve import Ask, ServeMetrics
from hybrid.adapters.metrics.watcher import Watcher

__all__ = ["Ask", "PrometheusQuery", "ServeMetrics", "UnreadableError", "Watcher"]
