"""Where text goes: data to stdout, everything about the doing to stderr.

On a terminal there is colour and the width is respected. In a pipe there is neither: lines
are as long as they need to be, so that `grep` and `awk` work.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_PIPE_WIDTH = 10_000


def console(*, stderr: bool = False) -> Console:
    """Return a console for one of the two streams."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return Console(stderr=stderr, highlight=False, emoji=False)
    return Console(
        stderr=stderr,
        highlight=False,
        emoji=False,
        width=_PIPE_WIDTH,
        force_terminal=False,
        no_color=True,
    )


def show(*parts: RenderableType) -> None:
    """Print parts of a page to stdout."""
    out = console()
    if out.is_terminal:
        out.print(*parts, sep="\n")
        return
    with out.capture() as captured:
        out.print(*parts, sep="\n", soft_wrap=False)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    sys.stdout.flush()


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
    sys.stdout.write("".join(f"{text}\n" for text in texts))
    sys.stdout.flush()
