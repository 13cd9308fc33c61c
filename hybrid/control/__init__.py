"""The loop: observe, decide, act, drain, reap."""

from __future__ import annotations
