"""The controller's HTTP API."""

from __future__ import annotations
