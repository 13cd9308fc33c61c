"""Fixtures that many tests share."""

from __future__ import annotations

import signal

from tests.ray_cluster import local_ray

__all__ = ["local_ray"]


def pytest_configure() -> None:
    """Hear Ctrl-C, and let what the tests start hear it.

    A shell without job control ignores it in what it starts in the background, and so would all
    their children: those whose Ctrl-C is tested too.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
