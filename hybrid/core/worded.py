"""Kinds of value for the settings of providers, which refuse in plain sentences.

For `Annotated`, in place of pydantic's `pattern` and bounds: an operator who is shown a regular
expression, or a limit in bytes, has to work out what was meant. Each sentence says what was
given, then `;`, then what to write.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from pydantic import AfterValidator, BeforeValidator

from hybrid.core.quantity import duration_s, duration_text, shown, size_bytes, size_text


def spelled(pattern: str, what: str, example: str) -> AfterValidator:
    """Return the rule that text is written like `pattern`, from its first to its last letter.

    Args:
        pattern: Regular expression, which nobody is shown.
        what: What it is, with its article: `a subnet`.
        example: What to write, such as `subnet-0123456789abcdef0`.
    """
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(f"{shown(text)} is not {what}; write for example {example}")
        return text

    return AfterValidator(check)


def seconds(*, low: float = 0.0, high: float = math.inf) -> BeforeValidator:
    """Return the reader of durations such as `5m`, or of seconds, within bounds."""

    def read(value: object) -> float:
        number = duration_s(value) if isinstance(value, str) else _number(value)
        if number is None:
            raise ValueError(f"{shown(value)} is not a duration; write for example 5m or 90s")
        _check(value, number, low, high, duration_text)
        return number

    return BeforeValidator(read)


def size(*, low: int = 0, high: float = math.inf) -> BeforeValidator:
    """Return the reader of sizes such as `100GiB`, or of bytes, within bounds."""

    def read(value: object) -> int:
        number = size_bytes(value) if isinstance(value, str) else _number(value)
        if number is None or number != int(number):
            raise ValueError(f"{shown(value)} is not a size; write for example 80MB or 16GiB")
        _check(value, number, low, high, lambda bound: size_text(int(bound)))
        return int(number)

    return BeforeValidator(read)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 10**18 else None  # also no infinity, and no NaN


def _check(
    value: object, number: float, low: float, high: float, text: Callable[[float], str]
) -> None:
    if number < low:
        raise ValueError(f"{shown(value)} is too little; write {text(low)} or more")
    if number > high:
        raise ValueError(f"{shown(value)} is too much; write {text(high)} or less")
