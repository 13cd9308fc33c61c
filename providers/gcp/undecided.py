"""Launches that Google accepted and whose end was not seen: why a machine never came."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from hybrid.core.errors import NotFoundError, ProviderError
from hybrid.core.ports import Clock
from providers.gcp.client import Client
from providers.gcp.errors import refused
from providers.gcp.naming import Place
from providers.gcp.resources import Operation

_REMEMBERED_S = 600.0


@dataclass
class Pending:
    """A machine whose launch was accepted and whose end was not seen.

    Attributes:
        operation: Of the machine, or of its whole gang.
        failed_at_s: When it was seen to have failed, by the clock that does not jump.
    """

    instance_id: str
    operation: Operation
    started_at_s: float
    problem: str = ""
    failed_at_s: float | None = None


@dataclass
class Undecided:
    """Remembers which launches are undecided. Any thread may call it.

    The memory only makes the list say sooner why a machine never came. Without it, after a
    restart, such a machine is missing from the list, and the next call with its token tells.
    """

    client: Client
    clock: Clock
    _pending: dict[Place, Pending] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, place: Place, instance_id: str, operation: Operation) -> None:
        """Remember a launch that was accepted just now."""
        with self._lock:
            self._pending[place] = Pending(instance_id, operation, self.clock.now_s())

    def forget(self, places: Iterable[Place]) -> None:
        """Forget launches: their machines were seen to run, or never will."""
        with self._lock:
            for place in places:
                self._pending.pop(place, None)

    def failed(self, listed: Collection[Place]) -> Iterator[tuple[Place, Pending]]:
        """Yield launches that were accepted and then failed, for ten minutes each.

        Args:
            listed: What the cloud's list has now: nothing is asked about that.
        """
        now_s = self.clock.monotonic_s()
        with self._lock:
            missing = [(p, pending) for p, pending in self._pending.items() if p not in listed]
        looked_at: dict[str, Operation] = {}  # the machines of a gang have one operation
        for place, pending in missing:
            if pending.failed_at_s is None:
                self._look_again(place, pending, looked_at)
            if pending.failed_at_s is None:
                continue
            if now_s - pending.failed_at_s > _REMEMBERED_S:
                self.forget([place])
                continue
            yield place, pending

    def _look_again(self, place: Place, pending: Pending, looked_at: dict[str, Operation]) -> None:
        name = pending.operation.name
        try:
            if name not in looked_at:
                looked_at[name] = self.client.look_at(pending.operation)
            operation = looked_at[name]
            if operation.failures and self._exists(place):
                return  # half made, and not in the list yet: not gone
        except ProviderError:
            return  # the list was read; only the reason of an absence stays unknown
        if operation.failures:
            error = refused(
                operation.failures, provider=self.client.provider, doing=f"launch {place}"
            )
            pending.problem = str(error)
            pending.failed_at_s = self.clock.monotonic_s()
        elif operation.is_done:
            self.forget([place])

    def _exists(self, place: Place) -> bool:
        try:
            self.client.get(place)
        except NotFoundError:
            return False
        return True
