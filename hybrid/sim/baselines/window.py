"""The largest value of the last few minutes, which holds a scaler back from going down."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass
class Window:
    """A stabilisation window.

    Args:
        length_s: How far it reaches back.
    """

    length_s: float
    _kept: deque[tuple[float, int]] = field(default_factory=deque)

    def largest(self, now_s: float, value: int) -> int:
        """Note a value; return the largest of the window."""
        while self._kept and self._kept[0][0] < now_s - self.length_s:
            self._kept.popleft()
        # A value that is followed by a larger one is never the largest again.
        while self._kept and self._kept[-1][1] <= value:
            self._kept.pop()
        self._kept.append((now_s, value))
        return self._kept[0][1]
