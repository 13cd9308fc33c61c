"""The command line: parse, call, print."""

from __future__ import annotations
