"""Numbers as a reader wants them: few digits, with their unit, and never a false zero."""

from __future__ import annotations

import math

UNKNOWN = "?"


def usd(value: float | None) -> str:
    """Return dollars: whole from 100 on; a little is never shown as nothing."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if 0 < value < 0.01:
        return "<$0.01"
    return f"${value:,.0f}" if abs(value) >= 100 or value == 0 else f"${value:,.2f}"


def short_usd(value: float) -> str:
    """Return dollars for an axis: `$950`, `$12k`, `$1.2M`."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"${_three(value / size)}{unit}"
    return f"${_three(value)}"


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share in percent; what is not all is never rounded up to 100."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    if share in (0, 1):
        return f"{100 * share:.0f}%"
    text = f"{100 * share:.{digits}f}"
    if share < 1 and text == f"{100:.{digits}f}":
        return f">{100 - 10**-digits:.{digits}f}%"
    if share > 0 and float(text) == 0:
        return f"<{10**-digits:.{digits}f}%"
    return f"{text}%"


def count(value: float | None) -> str:
    """Return a count with its thousands apart."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:,.0f}"


def times(value: float | None) -> str:
    """Return a ratio such as `4.1x`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.0f}x" if value >= 100 else f"{value:.2f}x"


def minutes(value_s: float | None) -> str:
    """Return a time in minutes: `4.8`, `25`; with one digit where that matters."""
    if value_s is None or not math.isfinite(value_s):
        return UNKNOWN
    value = value_s / 60
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def number(value: object) -> str:
    """Return a parameter as it is."""
    if isinstance(value, float):
        return f"{value:,.10g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(number(item) for item in value) or "-"
    return str(value)


def _three(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"
