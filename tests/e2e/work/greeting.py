"""A module that travels with the working directory."""

from __future__ import annotations

WORDS = "from the module"
