"""The controller's log: one JSON object a line."""

from __future__ import annotations

import io
import logging
import sys
from contextlib import suppress
from typing import TextIO

import structlog


def configure(*, is_pretty: bool) -> None:
    """Send the log to standard error, as JSON or, for a person, as coloured lines."""
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if is_pretty else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(_Lossy(sys.stderr)),
        cache_logger_on_first_use=True,
    )


class _Lossy(io.TextIOBase, TextIO):
    """Drops what cannot be written: a full disk must cost lines of the log, not the controller."""

    def __init__(self, to: TextIO) -> None:
        self._to = to

    def write(self, text: str, /) -> int:
        with suppress(OSError):
            self._to.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._to.flush()


def get(name: str) -> structlog.typing.FilteringBoundLogger:
    """Return the logger of a module."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(module=name)
    return logger
