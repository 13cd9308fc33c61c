"""Ending a set of processes: gently, then for certain."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence

from hybrid.node.processes import Process, is_alive, send

GENTLE_S = 3.0
"""Time between SIGTERM and SIGKILL. A raylet needs more than 2 s to say goodbye (measured)."""

_LIMIT_S = 10.0  # a killed process can stay for a while in the kernel, never long
_POLL_S = 0.02
_FIRST = "raylet"  # ends its workers and tells the head that the node leaves


def end_all(
    look: Callable[[], Sequence[Process]], *, gentle_s: float = GENTLE_S
) -> tuple[Process, ...]:
    """End what `look` finds, also what it finds later, and return what would not end.

    Args:
        look: Returns the live processes that must go. Asked again and again, because they
            may start others while they end.
        gentle_s: Time between SIGTERM and SIGKILL.
    """
    hard_at_s = time.monotonic() + gentle_s
    found = look()
    raylets = [process for process in found if process.name == _FIRST]
    _signal(raylets, signal.SIGTERM)
    while any(is_alive(process) for process in raylets) and time.monotonic() < hard_at_s:
        time.sleep(_POLL_S)
    found = look()
    _signal(found, signal.SIGTERM)
    while found and time.monotonic() < hard_at_s:
        time.sleep(_POLL_S)
        found = look()
    give_up_at_s = time.monotonic() + _LIMIT_S
    while (found := look()) and time.monotonic() < give_up_at_s:
        _signal(found, signal.SIGKILL)
        time.sleep(_POLL_S)
    return tuple(found)


def _signal(found: Sequence[Process], number: signal.Signals) -> None:
    for process in found:
        try:
            send(process, number)
        except PermissionError:
            continue  # a child that changed its user; `end_all` reports it as left
