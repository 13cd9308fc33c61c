"""Checks of values, so that a plan already says what is wrong."""

from __future__ import annotations

import re

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_LAYER = re.compile(r"[a-z0-9][a-z0-9_-]{0,56}")
_DURATION = re.compile(r"(\d+(\.\d+)?(ms|s|m|h|d))+")
_LONGEST_NAME = 31
"""As `hybrid.settings.words.NAME` has it; a test compares the two."""


def name(value: str) -> str:
    """Refuse what is no cluster name."""
    if not _NAME.fullmatch(value):
        return (
            f"{value!r} is not a cluster name; write small letters, digits and hyphens, beginning "
            "with a letter"
        )
    if len(value) > _LONGEST_NAME:
        return f"the name has {len(value)} characters; write at most {_LONGEST_NAME}"
    return ""


def cloud_name(value: str) -> str:
    """Refuse what cannot name one cloud of a cluster."""
    if _LAYER.fullmatch(value):
        return ""
    return f"{value!r} is not usable as a name; write small letters, digits, - and _"


def duration(value: str) -> str:
    """Refuse what is no duration."""
    if _DURATION.fullmatch(value):
        return ""
    return f"{value!r} is not a duration; write for example 90s, 10m or 1h30m"


def at_least_zero(value: float) -> str:
    """Refuse negative numbers."""
    return "" if value >= 0 else f"{value} is below zero; write 0 or more"


def whole(value: float) -> str:
    """Refuse what counts nothing."""
    if value != int(value):
        return f"{value} is not a whole number"
    return at_least_zero(value)
