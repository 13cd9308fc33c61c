"""The job queue: admission and dispatch."""

from __future__ import annotations
