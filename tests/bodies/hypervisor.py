"""What switches an emulated cloud's machines on and off.

It looks at the cloud many times a second: a machine that the cloud calls running gets a body, one
that it no longer has loses its body, and of a body that ended by itself the cloud is told. So the
emulators know nothing of bodies.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Protocol

from tests.bodies.body import Body, Boot
from tests.bodies.network import Network

LOOK_S = 0.1


class Side(Protocol):
    """A cloud as its hypervisors see it. Ids are the cloud's own."""

    def running(self) -> Mapping[str, Callable[[], Boot]]:
        """Return the machines that are to be on, and what each is switched on with."""
        ...

    def asked_off(self) -> Set[str]:
        """Return those of them whose power button the cloud has pressed."""
        ...

    def went_off(self, machine_id: str) -> None:
        """Learn that a machine went off by itself."""
        ...


class Hypervisor:
    """Gives the machines of one cloud bodies, on a thread of its own.

    Attributes:
        bodies: By the cloud's own ids, those that ended included.
        sees_power_cuts: Whether the cloud learns of a machine that died without shutting down.
        problem: What went wrong with it.
    """

    def __init__(self, network: Network, side: Side, *, kept: Sequence[Path] = ()) -> None:
        self.bodies: dict[str, Body] = {}
        self.sees_power_cuts = True
        self.problem = ""
        self._network = network
        self._side = side
        self._kept = kept
        self._pressed: set[str] = set()
        self._told: set[str] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hypervisor")
        self._thread.start()

    def on(self) -> dict[str, Body]:
        """Return the machines that are on."""
        return {i: body for i, body in list(self.bodies.items()) if body.is_on}

    def close(self) -> None:
        """Cut the power of all machines."""
        self._end.set()
        self._thread.join()
        for body in self.bodies.values():
            body.close()

    def _run(self) -> None:
        try:
            while not self._end.wait(LOOK_S):
                self._look()
        except BaseException as err:
            self.problem = f"{type(err).__name__}: {err}"
            raise

    def _look(self) -> None:
        wanted = self._side.running()
        for machine_id, boot in wanted.items():
            if machine_id not in self.bodies:
                self.bodies[machine_id] = Body(self._network, boot(), kept=self._kept)
        for machine_id in self._side.asked_off() - self._pressed:
            if machine_id in self.bodies:
                self.bodies[machine_id].press_power_button()
                self._pressed.add(machine_id)
        for machine_id, body in self.bodies.items():
            if not body.is_on:
                self._tell(machine_id, body, is_wanted=machine_id in wanted)
            elif machine_id not in wanted:
                body.cut_power()

    def _tell(self, machine_id: str, body: Body, *, is_wanted: bool) -> None:
        if machine_id in self._told or not is_wanted:
            return
        if self.sees_power_cuts or body.was_shut_down:
            self._told.add(machine_id)
            self._side.went_off(machine_id)


def wait_until_off(bodies: Sequence[Body], *, limit_s: float) -> bool:
    """Return whether all of them went off within a time."""
    end_s = time.monotonic() + limit_s
    while any(body.is_on for body in bodies) and time.monotonic() < end_s:
        time.sleep(0.1)
    return not any(body.is_on for body in bodies)
