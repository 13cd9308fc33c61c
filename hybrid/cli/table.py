"""Tables without borders: readable on a terminal, and by `awk` in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.cli.words import safe

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_STYLE_BY_WORD = {
    **dict.fromkeys(("busy", "running", "succeeded", "ok", "ready"), "green"),
    **dict.fromkeys(("idle", "terminated", "cancelled"), "dim"),
    **dict.fromkeys(
        ("joining", "booting", "requested", "draining", "terminating", "queued", "submitted"),
        "yellow",
    ),
    **dict.fromkeys(("failed", "fail", "lost", "stalled", "fenced"), "bold red"),
    **dict.fromkeys(("warn", "launch", "drain", "terminate"), "yellow"),
}


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        is_number: Aligned to the right.
        is_long: May be wrapped on a narrow terminal; others are kept whole.
    """

    name: str
    is_number: bool = False
    is_long: bool = False


def table(columns: Sequence[Column | str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table; words such as `failed` are coloured on a terminal."""
    from rich.table import Table

    result = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        spec = Column(column) if isinstance(column, str) else column
        result.add_column(
            spec.name,
            justify="right" if spec.is_number else "left",
            no_wrap=not spec.is_long,
            overflow="fold" if spec.is_long else "ellipsis",
        )
    for row in rows:
        result.add_row(*(cell(value) for value in row))
    return result


def cell(value: str) -> Text:
    """Return a value as it is: no markup in it is obeyed, no control character kept."""
    from rich.text import Text

    return Text(safe(value), style=_STYLE_BY_WORD.get(value, ""))


def text(value: str, style: str = "") -> Text:
    """Return a line of a page, taken literally."""
    from rich.text import Text

    return Text(safe(value), style=style)
