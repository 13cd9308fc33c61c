"""Where text goes: data to stdout, everything about the doing to stderr.

On a terminal there is colour and the width is respected. In a pipe there is neither: lines
are as long as they need to be, so that `grep` and `awk` work.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.cli.table import Part

if TYPE_CHECKING:
    from rich.console import Console


def terminal(*, stderr: bool = False) -> Console:
    """Return a console for one of the two streams, which is a terminal."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, emoji=False, markup=False)


def show(*parts: Part) -> None:
    """Print parts of a page to stdout."""
    if sys.stdout.isatty():
        terminal().print(*parts, sep="\n")
    else:
        lines([line for part in parts for line in part.plain()])


def write(content: bytes) -> None:
    """Write an answer of the API to stdout, exactly, and a line end."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content + b"\n")
    sys.stdout.buffer.flush()


def say(text: str) -> None:
    """Write a line about the doing to stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def lines(texts: Sequence[str]) -> None:
    """Write lines to stdout."""
    content = "".join(f"{text}\n" for text in texts).encode("utf-8", "replace")
    sys.stdout.flush()
    sys.stdout.buffer.write(content)  # UTF-8 also where the locale says otherwise
    sys.stdout.buffer.flush()
