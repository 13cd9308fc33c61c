"""How far simulations are: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hybrid.cli import output
from hybrid.cli.words import safe

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LINE_EVERY_S = 10.0


class Meter:
    """Shows on stderr which part of something is done.

    Args:
        what: What is being done.
    """

    def __init__(self, what: str) -> None:
        self._what = safe(what)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._said_at_s = time.perf_counter()

    def __enter__(self) -> Self:
        """Begin to show it."""
        if sys.stderr.isatty():
            from rich.progress import (
                BarColumn,
                Progress,
                TaskProgressColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TaskProgressColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=output.terminal(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take it away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def show(self, done: float, total: float, label: str = "") -> None:
        """Say how much of how much is done, and what goes on."""
        text = f"{self._what}: {safe(label)}" if label else self._what
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text, completed=done, total=total)
            return
        now_s = time.perf_counter()
        if now_s - self._said_at_s >= _LINE_EVERY_S:
            self._said_at_s = now_s
            share = done / total if total else 1.0
            output.say(f"{text} ({share:.0%})")
