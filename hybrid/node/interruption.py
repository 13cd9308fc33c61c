"""A pretended machine that its pretended cloud takes back, as clouds do with spot instances."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hybrid.node.orders import Takeback


class Interruption:
    """Gives notice in a file, as the watcher of a real machine does, and says when it is over."""

    def __init__(
        self,
        orders: Takeback,
        notice_file: Path,
        *,
        wall_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._orders = orders
        self._file = notice_file
        self._wall_s = wall_s
        self._monotonic_s = monotonic_s
        self._began_s = monotonic_s()
        self._is_given = False

    def step(self) -> bool:
        """Give notice when it is time; return whether the machine is taken back now."""
        left_s = self._began_s + self._orders.after_s - self._monotonic_s()
        if left_s <= self._orders.notice_s and not self._is_given:
            with suppress(OSError):  # a full disk: again at the next step
                draft = self._file.with_name(f".{self._file.name}.{os.getpid()}")
                draft.write_text(f"{self._wall_s() + left_s:.0f} local-interrupt")
                draft.replace(self._file)
                self._is_given = True
        return left_s <= 0
