"""Where the burst policy decides. Pure."""

from __future__ import annotations
