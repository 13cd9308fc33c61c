"""One host and the thread that works with it, so that nobody else ever waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from hybrid.adapters.ssh_fleet.host import NodeState, Site, SshHost, Steps, leave
from hybrid.adapters.ssh_fleet.refusals import SshError
from hybrid.core.errors import FleetError
from hybrid.core.models import Shape
from hybrid.core.ports import HostState, HostStatus

_STARTING_S = 1.0  # between two looks while it starts,
_RUNNING_S = 10.0  # while it runs,
_BLIND_S = 2.0  # after a look that failed,
_AWAY_S = 15.0  # and between two attempts while it does not answer
_BLIND_COUNT = 2  # looks in a row that failed before what was known is given up
_BUSY_S = 150.0


class Keeper:
    """Keeps a host's last known state, and its node running once that was asked for."""

    def __init__(self, host: SshHost, site: Site) -> None:
        self.host = host
        self._site = site
        self._steps = Steps(host, site)
        self._words: queue.Queue[str] = queue.Queue()
        self._busy = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_wanted = False
        self._is_away = False
        self._blind_count = 0
        self._status = HostStatus(
            host=host.name, state=HostState.JOINING, shape=self._known_shape()
        )

    @property
    def status(self) -> HostStatus:
        """The last known state, at once; a look in the background makes it newer."""
        if self._thread is None:
            self._say("look")
        return self._status

    def join(self) -> None:
        """Have the node started; returns at once."""
        self._is_wanted = True
        if not self._is_away:  # one that is off stays so until it answers
            self._status = self._of(HostState.JOINING, "")
        self._say("join")

    def leave(self) -> None:
        """End the node and return when it has ended. Raises `FleetError`."""
        self._is_wanted = False
        if not self._busy.acquire(timeout=_BUSY_S):
            raise FleetError(
                f"host {self.host.name} is busy with another step; try `hybrid down` again"
            )
        try:
            leave(self._site, self.host.name)
            self._status = self._of(HostState.ABSENT, "")
        finally:
            self._busy.release()

    def close(self) -> None:
        """End the thread; the node goes on."""
        self._is_wanted = False
        if self._thread is not None:
            self._words.put("close")

    def _say(self, word: str) -> None:
        if self._thread is None:
            name = f"host-{self.host.name}"
            self._thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._thread.start()
        self._words.put(word)

    def _work(self) -> None:
        while True:
            try:
                word = self._words.get(timeout=self._pause_s())
            except queue.Empty:
                word = "join" if self._is_away else "look"
            while word != "close" and not self._words.empty():
                with suppress(queue.Empty):
                    word = self._words.get_nowait()
            if word == "close":
                return
            with self._busy:
                if word == "join" and self._is_wanted:
                    self._try(self._steps.join)
                elif word == "look":
                    self._try(self._steps.look)

    def _pause_s(self) -> float | None:
        if self._status.state is HostState.JOINING:
            return _STARTING_S
        if self._status.state is HostState.JOINED:
            return _BLIND_S if self._blind_count else _RUNNING_S
        return _AWAY_S if self._is_away and self._is_wanted else None

    def _try(self, step: Callable[[], NodeState]) -> None:
        try:
            state = step()
        except FleetError as error:
            self._fail(error)
            return
        self._blind_count = 0
        self._is_away = False
        self._status = self._read(state)

    def _fail(self, error: FleetError) -> None:
        self._is_away = isinstance(error, SshError) and error.is_away
        self._blind_count += 1
        was_up = self._status.state is HostState.JOINED
        if was_up and self._is_away and self._blind_count < _BLIND_COUNT:
            return  # Ray knows better whether it works
        self._status = self._of(HostState.FAILED, str(error))

    def _read(self, state: NodeState) -> HostStatus:
        if state.is_working:
            is_up = state.phase == "running"
            there = HostState.JOINED if is_up else HostState.JOINING
        else:
            there = HostState.FAILED if state.problem else HostState.ABSENT
        return self._of(there, state.problem, shape=self._known_shape(), pids=state.pids)

    def _known_shape(self) -> Shape:
        try:
            record = self._site.records.read().get(self.host.name)
        except FleetError:
            record = None
        return record.shape if record is not None else self.host.plan.resources

    def _of(
        self,
        state: HostState,
        problem: str,
        *,
        shape: Shape | None = None,
        pids: tuple[int, ...] = (),
    ) -> HostStatus:
        known = self._status.shape if shape is None else shape
        return HostStatus(host=self.host.name, state=state, shape=known, problem=problem, pids=pids)
