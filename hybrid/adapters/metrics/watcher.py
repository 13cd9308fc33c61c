"""Watches services in a thread of its own, so that nobody waits for what does not answer."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hybrid.core.slo import Judgement, Load, Reading, Seen, Slo, judge

if TYPE_CHECKING:
    from hybrid.core.ports.clock import Clock
    from hybrid.core.ports.slo import SloSource

_MOST_READINGS = 64


class Board:
    """What was measured last, between the thread that measures and the one that decides.

    Attributes:
        stopped: Ends the thread.
    """

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._readings: dict[str, deque[Reading]] = {}
        self._loads: dict[str, Load] = {}

    def put(self, seen: Mapping[str, Seen]) -> None:
        """Add what a look brought."""
        with self._lock:
            for name, one in seen.items():
                if one.reading is not None:
                    readings = self._readings.setdefault(name, deque(maxlen=_MOST_READINGS))
                    readings.append(one.reading)
                self._loads[name] = one.load

    def take(self, name: str) -> tuple[list[Reading], Load]:
        """Return the readings and the last load of a service."""
        with self._lock:
            return list(self._readings.get(name, ())), self._loads.get(name, Load())


class Watcher:
    """Looks at one source again and again. One thread at a time may ask it.

    Args:
        make: Makes the source, in the thread that uses it.
        slos: The promise of each service that the source tells of.
        clock: Time.
    """

    def __init__(
        self, make: Callable[[], SloSource], slos: Mapping[str, Slo], clock: Clock
    ) -> None:
        self.board = Board()
        self._slos = dict(slos)
        self._clock = clock
        self._judgements: dict[str, Judgement] = {}
        self._thread = threading.Thread(
            target=_look_on,
            args=(self.board, make, self._slos, clock),
            name=f"slo-{next(iter(self._slos))}",
            daemon=True,
        )

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def judge(self, name: str) -> tuple[Judgement, Load]:
        """Return the judgement of this moment and the last load; waits for nothing."""
        readings, load = self.board.take(name)
        before = self._judgements.get(name, Judgement())
        now_s = self._clock.monotonic_s()
        self._judgements[name] = judge(readings, self._slos[name], before, now_s=now_s)
        return self._judgements[name], load

    def stop(self) -> None:
        """End the thread, soon."""
        self.board.stopped.set()


def _look_on(
    board: Board, make: Callable[[], SloSource], slos: Mapping[str, Slo], clock: Clock
) -> None:
    """Look until the board says stop.

    Nothing but the board is held, so that whoever made the watcher can be forgotten.
    """
    every_s = min(slo.step_s for slo in slos.values()) / 4
    source: SloSource | None = None
    while not board.stopped.is_set():
        now_s = clock.monotonic_s()
        try:
            source = source or make()
            board.put(source.look(now_s))
        except Exception as error:  # noqa: BLE001  # a thread that ends would be silence for ever
            why = f"it cannot be measured: {error}" if str(error) else type(error).__name__
            board.put(
                {name: Seen(Reading(now_s, slo.step_s, why=why)) for name, slo in slos.items()}
            )
        board.stopped.wait(every_s)
    if source is not None:
        source.close()
