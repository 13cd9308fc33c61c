"""The lease: until when this node may live without hearing from its controller."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

UNREADABLE_S = 600.0
"""How long a node lives whose lease could never be read: two renewals of the default lease."""


class Lease:
    """A file with one number, seconds since the epoch, turned into a monotonic deadline.

    The wall clock is read only when the file's content changes, so a jump of it between two
    renewals ends nothing. A file that is missing or damaged leaves the last deadline in force.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        wall_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._wall_s = wall_s
        self._monotonic_s = monotonic_s
        self._content = b""
        self._deadline_s = math.inf if path is None else monotonic_s() + UNREADABLE_S
        self.renew()

    def renew(self) -> None:
        """Read the file again."""
        if self._path is None:
            return
        try:
            content = self._path.read_bytes()[:64]
        except OSError:
            return
        if content == self._content:
            return
        self._content = content
        until_s = _number(content)
        if until_s is not None:
            self._deadline_s = self._monotonic_s() + (until_s - self._wall_s())

    def left_s(self) -> float:
        """Return the seconds left; negative when it is over, infinite without a lease."""
        return self._deadline_s - self._monotonic_s()


def _number(content: bytes) -> float | None:
    try:
        value = float(content)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
