"""Reading text files that may be huge, piece by piece, so that none is in memory as a whole."""

from __future__ import annotations

import codecs
import os
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from hybrid.core.ports import LogEnd

PIECE_BYTES = 256 * 1024


def pieces_of(path: Path) -> Iterator[str]:
    """Yield what the file holds now; what is written meanwhile is left out.

    Nothing at all when it is gone: its node has just left.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    try:
        with path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size
            while left > 0 and (content := file.read(min(left, PIECE_BYTES))):
                left -= len(content)
                if text := decoder.decode(content):
                    yield text
    except OSError:
        return
    if text := decoder.decode(b"", final=True):
        yield text


def end_of(paths: Iterable[Path], limit_bytes: int) -> LogEnd:
    """Return the last bytes of files that belong one behind the other, by seeking to them."""
    parts: list[bytes] = []
    left, skipped_bytes = limit_bytes, 0
    for path in reversed(list(paths)):
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                start = max(0, size - left)
                file.seek(start)
                part = file.read(min(size, left))
        except OSError:
            continue  # its node has just left
        parts.insert(0, part)
        skipped_bytes += start
        left -= len(part)
    text = b"".join(parts).decode(errors="replace")
    return LogEnd(text=text, skipped_bytes=skipped_bytes)


def end_of_pieces(pieces: Iterable[str], limit_bytes: int) -> LogEnd:
    """Return the last bytes of a text that comes in pieces, keeping no more than those."""
    kept: deque[bytes] = deque()
    kept_bytes = skipped_bytes = 0
    for piece in pieces:
        content = piece.encode(errors="replace")
        kept.append(content)
        kept_bytes += len(content)
        while kept_bytes - len(kept[0]) >= limit_bytes:
            skipped_bytes += len(kept[0])
            kept_bytes -= len(kept.popleft())
    content = b"".join(kept)
    over_bytes = max(0, len(content) - limit_bytes)
    text = content[over_bytes:].decode(errors="replace")
    return LogEnd(text=text, skipped_bytes=skipped_bytes + over_bytes)


class GrowingFile:
    """A text file that is written while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0

    def fresh(self, *, is_last: bool) -> Iterator[str]:
        """Yield what came since the last call: whole lines, unless a line is very long.

        Args:
            is_last: Nothing more will come, so an unfinished last line is given, too.
        """
        while True:
            content = self._read()
            is_end = len(content) < PIECE_BYTES
            size = len(content) if is_last and is_end else content.rfind(b"\n") + 1
            if not size and not is_end:
                size = _whole_characters(content)
            self._read_bytes += size
            if size:
                yield content[:size].decode(errors="replace")
            if is_end:
                return

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_bytes)
                return file.read(PIECE_BYTES)
        except OSError:
            return b""  # not there yet, or its node has just left


def _whole_characters(content: bytes) -> int:
    """Return how many bytes make whole UTF-8 characters; what is no UTF-8 counts as whole."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte & 0b1100_0000 != 0b1000_0000:  # the first byte of a character
            length = 1 if byte < 0b1100_0000 else 2 + (byte >= 0b1110_0000) + (byte >= 0b1111_0000)
            return len(content) - back if length > back else len(content)
    return len(content)
