"""The pure heart: values, rules and decisions. No I/O, no clock, no randomness."""

from __future__ import annotations
