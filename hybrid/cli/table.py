"""What pages are made of: lines, and tables without borders.

On a terminal Rich draws them: coloured, and wrapped to the width. In a pipe they are plain
text, every row on one line, made here because Rich takes a second for a thousand rows.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hybrid.cli.words import safe

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_GAP = "  "
_STYLE_BY_WORD = {
    **dict.fromkeys(("busy", "running", "succeeded", "ok", "ready", "met"), "green"),
    **dict.fromkeys(("idle", "terminated", "cancelled", "skip"), "dim"),
    **dict.fromkeys(
        ("joining", "booting", "requested", "draining", "terminating", "queued", "submitted"),
        "yellow",
    ),
    **dict.fromkeys(("failed", "fail", "lost", "stalled", "degraded", "broken"), "bold red"),
    **dict.fromkeys(("warn", "launch", "drain", "terminate", "unknown"), "yellow"),
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


@dataclass(frozen=True)
class Line:
    """A line of a page, taken literally."""

    content: str
    style: str = ""

    def plain(self) -> Iterator[str]:
        """Yield it for a pipe."""
        yield safe(self.content)

    def __rich__(self) -> Text:
        """Return it for a terminal."""
        from rich.text import Text

        return Text(safe(self.content), style=self.style)


@dataclass(frozen=True)
class Grid:
    """A table; its values are taken literally too."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    def plain(self) -> Iterator[str]:
        """Yield its lines for a pipe."""
        lines = [[column.name for column in self.columns]]
        lines += [[safe(value) for value in row] for row in self.rows]
        widths = [max(map(cell_count, values)) for values in zip(*lines, strict=True)]
        for line in lines:
            cells = zip(self.columns, line, widths, strict=True)
            yield _GAP.join(_padded(*cell) for cell in cells).rstrip()

    def __rich__(self) -> Table:
        """Return it for a terminal."""
        from rich.table import Table
        from rich.text import Text

        result = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="bold")
        for column in self.columns:
            result.add_column(
                column.name,
                justify="right" if column.is_number else "left",
                no_wrap=not column.is_long,
                overflow="fold" if column.is_long else "ellipsis",
            )
        for row in self.rows:
            cells = [Text(safe(value), style=_STYLE_BY_WORD.get(value, "")) for value in row]
            result.add_row(*cells)
        return result


Part: TypeAlias = Line | Grid
"""What a page is made of."""


def table(columns: Sequence[Column | str], rows: Iterable[Sequence[str]]) -> Grid:
    """Return a table; words such as `failed` are coloured on a terminal."""
    named = [Column(column) if isinstance(column, str) else column for column in columns]
    return Grid(named, list(rows))


def text(content: str, style: str = "") -> Line:
    """Return a line of a page."""
    return Line(content, style)


def cell_count(content: str) -> int:
    """Return how many cells of a terminal text takes; Chinese characters take two."""
    if content.isascii():
        return len(content)
    return sum(map(_cells_of, content))


def _cells_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _padded(column: Column, content: str, width: int) -> str:
    space = " " * (width - cell_count(content))
    return space + content if column.is_number else content + space
