"""Unquoted words of a YAML file, kept as they were written until their meaning is known.

YAML 1.1 guesses: it reads `off` as false, `2.60` as 2.6 and `1:30` as 90. Here the field that
takes a value decides how to read its text, so nothing is lost before it is checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class Plain(str):
    """Text that stood without quotes in the file."""

    __slots__ = ()


def is_null(text: str) -> bool:
    """Return whether unquoted `text` means that there is no value."""
    return text in _NULL


def resolve(value: object) -> object:
    """Return `value` with unquoted words read as YAML 1.2 does: null, booleans and numbers.

    For keys that only a provider understands, so that it gets ordinary values.
    """
    if isinstance(value, Mapping):
        return {str(key): resolve(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item) for item in value]
    return _resolve_plain(value) if isinstance(value, Plain) else value


def _resolve_plain(text: Plain) -> object:
    if is_null(text):
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return str(text)
