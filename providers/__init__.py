"""Clouds that rent instances, one module or folder each; found by entry point."""

from __future__ import annotations
