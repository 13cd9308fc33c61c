"""Where latencies of services come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hybrid.core.slo import Seen


class SloSource(Protocol):
    """Something that can be asked how services are doing.

    It keeps what it needs from one look to the next. One thread uses it.
    """

    def look(self, now_s: float) -> Mapping[str, Seen]:
        """Return what is seen of each service, by its name.

        Never raises for what is outside: a source that does not answer makes readings whose value
        is unknown and whose reason says why. Returns within its own time limit.

        Args:
            now_s: Now, by a clock that does not jump; ends up in the readings.
        """
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
