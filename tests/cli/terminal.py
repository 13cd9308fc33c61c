"""A terminal for tests: runs a program in a pty and reads what a person would see."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_LIMIT_S = 60.0


class Terminal:
    """A running program and everything it has printed so far."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        columns: int = 100,
        lines: int = 40,
    ) -> None:
        self.text = ""
        self._read, write = pty.openpty()
        fcntl.ioctl(write, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        name = os.ttyname(write)
        # a session leader that opens a terminal gets it as its own, and so Ctrl-C
        opened = f'exec "$@" <{name} >{name} 2>&1'
        self.process = subprocess.Popen(
            ["sh", "-c", opened, "sh", *words], env=dict(env), cwd=cwd, start_new_session=True
        )
        self._write = write

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._read)
        os.close(self._write)

    def wait_for(self, text: str) -> None:
        """Read until `text` was printed."""
        end_s = time.monotonic() + _LIMIT_S
        while text not in self.text:
            assert time.monotonic() < end_s, f"no {text!r} in {self.text!r}"
            if not self._take() and self.process.poll() is not None and text not in self.text:
                raise AssertionError(f"ended without {text!r}: {self.text!r}")

    def type(self, text: str) -> None:
        """Type on the keyboard; code 3 is Ctrl-C."""
        os.write(self._read, text.encode())

    def finish(self, key: str = "") -> int:
        """Read until the program has ended; its exit code.

        Args:
            key: Typed until then, once a second: a program that begins to read a line throws away
                what was typed just before, and people type again.
        """
        end_s = time.monotonic() + _LIMIT_S
        again_at_s = 0.0
        while self._take() or self.process.poll() is None:
            now_s = time.monotonic()
            assert now_s < end_s, f"does not end: {self.text!r}"
            if key and now_s >= again_at_s and self.process.poll() is None:
                again_at_s = now_s + 1.0
                with suppress(OSError):  # it has just ended
                    self.type(key)
        return self.process.wait()

    def _take(self) -> bool:
        ready, _, _ = select.select([self._read], [], [], 0.2)
        if not ready:
            return False
        try:
            piece = os.read(self._read, 65536)
        except OSError:  # the program closed its side
            return False
        self.text += piece.decode("utf-8", "replace")
        return bool(piece)
