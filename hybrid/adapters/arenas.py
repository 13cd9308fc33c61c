"""Memory that the C library keeps back: little of it, however many threads there were."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8  # malloc.h of glibc


def limit_arenas(count: int = 2) -> bool:
    """Let all threads share so many of glibc's arenas; return whether that could be said.

    A tick asks the clouds in threads of its own, and each may be given another of up to eight
    arenas a processor. Each keeps what the largest answer needed: a controller's memory grew for
    hours while what it used stayed the same. It is said here and not in the environment, which
    Ray's processes on the head would inherit.

    Args:
        count: Of arenas, the main one too.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, count))
    except (AttributeError, OSError):
        return False  # another C library
