"""The benchmark of the burst policy: traces and sizes, baselines and bounds, in one table."""

from __future__ import annotations
