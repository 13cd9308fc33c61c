"""Says what goes on while something takes time: a spinner on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hybrid.cli import output
from hybrid.cli.words import safe

if TYPE_CHECKING:
    from rich.status import Status
    from rich.text import Text


class Progress:
    """The current phase of something slow, on stderr.

    Args:
        what: What is being done, such as `Starting lab`.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._last = ""
        self._spinner: Status | None = None

    def __enter__(self) -> Self:
        """Begin to show it."""
        if sys.stderr.isatty():
            from rich.status import Status

            self._spinner = Status(self._text(""), console=output.terminal(stderr=True))
            self._spinner.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the spinner away."""
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None

    def show(self, phase: str) -> None:
        """Name the phase; the same one again shows nothing new."""
        if phase == self._last:
            return
        self._last = phase
        if self._spinner is not None:
            self._spinner.update(self._text(phase))
        elif phase:
            output.say(f"{self._what}: {safe(phase)}")

    def _text(self, phase: str) -> Text:
        from rich.text import Text

        return Text(safe(f"{self._what}: {phase}" if phase else self._what))
