"""Latency promises: what is measured, whether it holds, and how many replicas that takes. Pure.

Plain dataclasses, not models: the same code runs inside Ray Serve's controller, where every second
of start-up counts and pydantic would be loaded for nothing.
"""

from __future__ import annotations

from hybrid.core.slo.histogram import Buckets, Growth, percentile
from hybrid.core.slo.judge import judge
from hybrid.core.slo.reading import Judgement, Load, Reading, Seen, Slo, SloState
from hybrid.core.slo.replicas import Ahead, ahead, excess, need_count
from hybrid.core.slo.steering import Steering, SteeringParams, steer

__all__ = [
    "Ahead",
    "Buckets",
    "Growth",
    "Judgement",
    "Load",
    "Reading",
    "Seen",
    "Slo",
    "SloState",
    "Steering",
    "SteeringParams",
    "ahead",
    "excess",
    "judge",
    "need_count",
    "percentile",
    "steer",
]
