"""Traces: what people asked of a cluster, from files of several formats."""

from __future__ import annotations
