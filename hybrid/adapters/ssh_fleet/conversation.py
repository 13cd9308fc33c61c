"""A child process that is spoken to and listened to, with an end in sight."""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from hybrid.core.ports import Clock

_PIECE_BYTES = 65_536
_ERROR_BYTES = 20_000
_LINE_BYTES = 4_000_000
_END_S = 5.0


@dataclass(frozen=True)
class Ended:
    """How it ended.

    Attributes:
        code: Its exit code; `None` when it had to be ended, because the time was up.
        said: The last of what it wrote to standard error.
    """

    code: int | None
    said: str


def converse(
    command: Sequence[str],
    words: bytes,
    on_line: Callable[[bytes], None],
    *,
    limit_s: float,
    clock: Clock,
) -> Ended:
    """Run a command, give it `words` on standard input, and hand over its lines as they come.

    Raises:
        OSError: It cannot be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us, who then end it
    )
    talk = _Talk(process, words, on_line)
    try:
        is_over = talk.go_on(clock.monotonic_s() + limit_s, clock)
        code = process.wait(_END_S) if is_over else None
    except subprocess.TimeoutExpired:
        code = None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):  # what was not written yet is lost, as it must be
                if stream is not None:
                    stream.close()
    return Ended(code, talk.error.decode(errors="replace"))


class _Talk:
    def __init__(
        self, process: subprocess.Popen[bytes], words: bytes, on_line: Callable[[bytes], None]
    ) -> None:
        assert process.stdin is not None  # noqa: S101  # all three are pipes
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        self._words = memoryview(words)
        self._on_line = on_line
        self._line = b""
        self._input, self._output = process.stdin, process.stdout
        self.error = b""
        self._open_count = 2  # outputs that it has not closed yet
        self._streams = selectors.DefaultSelector()
        for stream in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(stream.fileno(), False)
            what = selectors.EVENT_WRITE if stream is process.stdin else selectors.EVENT_READ
            self._streams.register(stream, what)

    def go_on(self, end_s: float, clock: Clock) -> bool:
        """Return whether both outputs ended in time."""
        with self._streams:
            while self._open_count:
                left_s = end_s - clock.monotonic_s()
                if left_s <= 0:
                    return False
                for key, _ in self._streams.select(left_s):
                    stream = key.fileobj
                    if stream is self._input:
                        self._write()
                    else:
                        self._read(stream)  # type: ignore[arg-type]  # a pipe of ours
            return True

    def _write(self) -> None:
        try:
            self._words = self._words[os.write(self._input.fileno(), self._words[:_PIECE_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:  # it does not listen any more; its own words say why
            self._words = self._words[:0]
        if not self._words:
            self._streams.unregister(self._input)
            with suppress(OSError):
                self._input.close()

    def _read(self, stream: IO[bytes]) -> None:
        piece = os.read(stream.fileno(), _PIECE_BYTES)
        if not piece:
            self._streams.unregister(stream)
            self._open_count -= 1
        elif stream is not self._output:
            self.error = (self.error + piece)[-_ERROR_BYTES:]
        else:
            *lines, self._line = (self._line + piece)[-_LINE_BYTES:].split(b"\n")
            for line in lines:
                self._on_line(line)
