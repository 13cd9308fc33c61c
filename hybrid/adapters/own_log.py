"""The controller's log file: its standard error, kept from filling the ledger's disk."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

LIMIT_BYTES = 32 * 2**20
"""Of one file. There are two: the one that is written, and the one before (`.1`)."""

_OUT, _ERR = 1, 2


class OwnLog:
    """Starts a new log file when the one that this process writes is full.

    The descriptor is replaced, so everything that writes to standard error follows, C libraries
    included. Standard error that is no such file (a terminal, a journal) is left alone.
    """

    def __init__(self, path: Path, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._path = path
        self._before = path.with_name(f"{path.name}.1")
        self._limit_bytes = limit_bytes

    def keep_small(self) -> None:
        """Do what is due. Never raises; what a full disk refuses is tried again next time."""
        with suppress(OSError):
            if os.fstat(_ERR).st_size < self._limit_bytes:
                return
            sys.stderr.flush()
            if _is_same(_ERR, self._path):
                self._path.replace(self._before)  # needs no room
            if _is_same(_ERR, self._before):
                self._begin()

    def _begin(self) -> None:
        fresh = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            is_out_too = _is_same(_OUT, self._before)
            os.dup2(fresh, _ERR)
            if is_out_too:
                os.dup2(fresh, _OUT)
        finally:
            os.close(fresh)


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False
