"""Values as people read them: ages, money, shapes. Unknown is `?`, never 0."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

UNKNOWN = "?"
NONE = "-"
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


def duration(duration_s: float | None) -> str:
    """Return a length of time in one or two units: `45s`, `3m`, `2h05m`, `3d4h`."""
    if duration_s is None:
        return UNKNOWN
    whole_s = max(0, int(duration_s))
    if whole_s < _MINUTE_S:
        return f"{whole_s}s"
    if whole_s < _HOUR_S:
        return f"{whole_s // _MINUTE_S}m"
    if whole_s < _DAY_S:
        return f"{whole_s // _HOUR_S}h{whole_s % _HOUR_S // _MINUTE_S:02d}m"
    return f"{whole_s // _DAY_S}d{whole_s % _DAY_S // _HOUR_S}h"


def age(at_s: float | None, now_s: float) -> str:
    """Return how long ago an instant was."""
    return UNKNOWN if at_s is None else duration(now_s - at_s)


def moment(at_s: float, now_s: float) -> str:
    """Return an instant in local time: `14:03:55` of today, `11-29 14:03` of another day."""
    from datetime import UTC, datetime

    at, now = (datetime.fromtimestamp(s, UTC).astimezone() for s in (at_s, now_s))
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%m-%d %H:%M}"


def money(usd: float | None) -> str:
    """Return an amount in dollars; a little is never shown as nothing."""
    if usd is None:
        return UNKNOWN
    if 0 < usd < 0.01:
        return "<$0.01"
    return f"${usd:,.2f}"


def rate(usd_per_hour: float | None) -> str:
    """Return a price per hour."""
    return UNKNOWN if usd_per_hour is None else f"{money(usd_per_hour)}/h"


def number(value: float | None) -> str:
    """Return a number without a needless fraction."""
    return UNKNOWN if value is None else f"{value:g}"


def used(value: float | None, total: float) -> str:
    """Return what is used of a total: `3/4`, `?/4`, and `-` when there is none."""
    return f"{number(value)}/{number(total)}" if total else NONE


def count(value: int, word: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{value} {word}" if value == 1 else f"{value} {word}s"


def places(where: str, sites: Sequence[str] = ()) -> str:
    """Return where work may run, the preferred first: `onprem, cloud`.

    Args:
        where: Label selectors in Ray's notation; `""` from an older controller.
        sites: What is known without them.
    """
    choices = where.split(" or ") if where else [f"site={site}" for site in sites]
    if all(re.fullmatch(r"site=\w+", choice) for choice in choices):
        return ", ".join(choice.removeprefix("site=") for choice in choices) or "anywhere"
    return where


def shape(resources: Mapping[str, float]) -> str:
    """Return resources as `GPU:1 CPU:2 memory:16GiB`; GPUs first."""
    first = ("GPU", "CPU", "memory")
    rest = sorted(name for name in resources if name not in first)
    names = [name for name in first if name in resources] + rest
    return " ".join(f"{name}:{_amount(name, resources[name])}" for name in names) or "nothing"


def _amount(name: str, value: float) -> str:
    if name in ("memory", "object_store_memory"):
        return f"{value / 2**30:.3g}GiB"
    return f"{value:g}"


def short(text: str, limit: int) -> str:
    """Return a text without what is beyond `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def safe(text: str) -> str:
    """Return text on one line, with what could steer a terminal made visible."""
    if text.isprintable():
        return text
    return "".join(
        _visible(char) if unicodedata.category(char)[0] in "CZ" and char != " " else char
        for char in text
    )


def _visible(char: str) -> str:
    if char in "\n\t\r\u3000\xa0\u2028\u2029":
        return " "
    return char.encode("unicode_escape").decode()
