"""Amounts as people write them: durations, sizes, GPU requests and ranges.

Every parser raises `ValueError` with one sentence that says what is wrong and what to write;
every formatter gives text that its parser reads back to the same value.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
_DURATION = re.compile(
    rf"(?:({_NUMBER})d)?(?:({_NUMBER})h)?(?:({_NUMBER})m)?(?:({_NUMBER})s)?(?:({_NUMBER})ms)?"
)
_DURATION_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000, 1)
_DURATION_NAMES = ("d", "h", "m", "s", "ms")
_SIZE = re.compile(rf"({_NUMBER}) ?([KMGTP]i?B|B)")
_SIZE_UNITS = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGTP", start=1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", start=1)},
}
_GPU = re.compile(r"([A-Za-z](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)(?::([0-9]{1,6}))?")
_GPU_COUNT_FIRST = re.compile(r"([0-9]{1,6})\s*[xX*: ]\s*([A-Za-z][A-Za-z0-9_.-]*)")
# Small x and few digits: A100x8 is a mistake, RTX4090 and rtx4090 are types.
_GPU_COUNT_LAST = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*?)\s*[x*= ]\s*([0-9]{1,2})")
_RANGE = re.compile(r"([0-9]{1,9})(?:\.\.([0-9]{1,9}))?")

_SHOWN_CHARS = 60


@dataclass(frozen=True)
class GpuRequest:
    """GPUs of one node.

    Attributes:
        accelerator: The type, such as `A100`; `""` when any type, or a logical one, will do.
        count: How many, at least 1.
    """

    accelerator: str
    count: int

    def __str__(self) -> str:
        """Return it as it is written in a file."""
        return f"{self.accelerator or 'GPU'}:{self.count}"


@dataclass(frozen=True)
class CountRange:
    """Whole numbers from `low` to `high`, both included."""

    low: int
    high: int

    def __contains__(self, value: object) -> bool:
        """Return whether a whole number lies within."""
        return isinstance(value, int) and self.low <= value <= self.high

    def __str__(self) -> str:
        """Return it as it is written in a file."""
        return f"{self.low}..{self.high}"


def shown(value: object) -> str:
    """Return a value as an error message shows it: short, on one line, quoted when text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        is_short = isinstance(value, int) and abs(value) < 10**18
        return str(value) if is_short else f"{_as_float(value):.6g}"
    if isinstance(value, str):
        short = value if len(value) <= _SHOWN_CHARS else value[:_SHOWN_CHARS] + "..."
        return repr(str(short))
    if value is None:
        return "nothing"
    return "a mapping" if isinstance(value, dict) else "a list"


def duration_s(text: str) -> float:
    """Return the seconds of a duration such as `5m`, `1h30m`, `90s` or `500ms`.

    Kept to the millisecond.

    Raises:
        ValueError: It has no unit, an unknown one, or units in the wrong order.
    """
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"{shown(text)} is not a duration; {_duration_hint(text)}")
    parts = zip(match.groups(), _DURATION_UNITS_MS, strict=True)
    return round(sum(float(number) * unit for number, unit in parts if number)) / 1000


def duration_text(duration_s: float) -> str:
    """Return a duration as it is written in a file: `5400.0` gives `1h30m`."""
    left_ms = round(duration_s * 1000)
    text = ""
    for unit_ms, name in zip(_DURATION_UNITS_MS, _DURATION_NAMES, strict=True):
        count, left_ms = divmod(left_ms, unit_ms)
        text += f"{count}{name}" if count else ""
    return text or "0s"


def size_bytes(text: str) -> int:
    """Return the bytes of a size such as `80MB` (10⁶) or `16GiB` (2³⁰).

    Raises:
        ValueError: It has no unit or an unknown one.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{shown(text)} is not a size; write a number and B, KB, MB, GB, TB "
            "(or KiB, MiB, GiB, TiB), for example 80MB or 16GiB"
        )
    unit: int = _SIZE_UNITS[match[2]]
    return round(float(match[1]) * unit)


def size_text(size_bytes: int) -> str:
    """Return a size as it is written in a file, in the largest unit that divides it."""
    for unit, factor in sorted(_SIZE_UNITS.items(), key=lambda item: -item[1]):
        if size_bytes and size_bytes % factor == 0:
            return f"{size_bytes // factor}{unit}"
    return f"{size_bytes}B"


def gpu_request(text: str) -> GpuRequest:
    """Return the GPUs named by `A100:8`, `A100` (one) or `GPU:4` (of no stated type).

    Raises:
        ValueError: It is not TYPE:COUNT with a count of at least 1.
    """
    match = _GPU.fullmatch(text)
    if match is None or (match[2] is None and _GPU_COUNT_LAST.fullmatch(text)):
        raise ValueError(f"{shown(text)} is not a GPU request; {_gpu_hint(text)}")
    count = int(match[2] or 1)
    if count < 1:
        raise ValueError(f"{shown(text)} asks for no GPU; leave it out, or ask for at least 1")
    return GpuRequest(accelerator="" if match[1].upper() == "GPU" else match[1], count=count)


def count_range(text: str) -> CountRange:
    """Return the range `1..4`; one number `3` is the range `3..3`.

    Raises:
        ValueError: It is no range of whole numbers, or its end lies before its start.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"{shown(text)} is not a range; write LOW..HIGH, for example 1..4")
    low, high = int(match[1]), int(match[2] or match[1])
    if high < low:
        raise ValueError(f"{shown(text)} ends before it starts; write {high}..{low}")
    return CountRange(low=low, high=high)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond 1e308
        return math.inf if value > 0 else -math.inf


def _duration_hint(text: str) -> str:
    if re.fullmatch(_NUMBER, text):
        return f"it has no unit: write {text}s for seconds or {text}m for minutes"
    return "write for example 90s, 5m, 1h30m or 2d"


def _gpu_hint(text: str) -> str:
    if re.fullmatch(r"[0-9]{1,6}", text):
        return f"write GPU:{text}, or a type and the count, for example A100:{text}"
    if match := _GPU_COUNT_LAST.fullmatch(text):
        return f"write TYPE:COUNT, for example {match[1]}:{match[2]}"
    if match := _GPU_COUNT_FIRST.fullmatch(text):
        return f"write TYPE:COUNT, for example {match[2]}:{match[1]}"
    if re.fullmatch(r"[^:]+:[0-9]*\.[0-9]+", text):
        return "a node has whole GPUs; write TYPE:COUNT, for example A100:8"
    return "write TYPE:COUNT, for example A100:8"
