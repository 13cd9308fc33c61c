"""The controller's log: one JSON object a line."""

from __future__ import annotations

import logging
import sys

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
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def get(name: str) -> structlog.typing.FilteringBoundLogger:
    """Return the logger of a module."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(module=name)
    return logger
