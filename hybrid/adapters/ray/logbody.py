"""Reading the answer `{"logs": "..."}` of Ray's dashboard while it comes.

A log has no limit, and as JSON it would be in memory several times over.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator

_START = re.compile(r'\s*\{\s*"logs"\s*:\s*"')
_START_MAX = 64

# Whole characters of a JSON string. The two halves of a large character stay together.
_CHARACTERS = re.compile(
    r"""(?:
        [^"\\]+
      | \\[^u]
      | \\u(?![dD][89abAB])[0-9a-fA-F]{4}
      | \\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{4}|(?=[^\\])|(?=\\[^u]))
    )*+""",
    re.VERBOSE,
)


def log_text(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the log in pieces.

    Raises:
        ValueError: This is no such answer, or it ends too early.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    waiting, has_begun = "", False
    for chunk in chunks:
        waiting += decoder.decode(chunk)
        if not has_begun:
            start = _START.match(waiting)
            if start is None and len(waiting) <= _START_MAX:
                continue
            if start is None:
                raise ValueError("this is not a log")
            waiting, has_begun = waiting[start.end() :], True
        found = _CHARACTERS.match(waiting)
        size = found.end() if found else 0
        piece, waiting = waiting[:size], waiting[size:]
        if piece:
            yield json.loads(f'"{piece}"', strict=False)
        if waiting.startswith('"'):
            return
        if len(waiting) > _START_MAX:
            raise ValueError("this is not a JSON string")
    raise ValueError("it ends too early")
