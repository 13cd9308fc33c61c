"""A service on a virtual clock: a queue, replicas of three kinds, and their bills."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from random import Random

from hybrid.sim.services.params import ServiceSimParams


@dataclass(frozen=True, slots=True)
class Seen:
    """What anybody may know at the end of a tick.

    Attributes:
        now_s: The end of the tick.
        arrived: Requests that came in the tick.
        served: Requests that were served in it.
        backlog: Requests that wait.
        home, borrowed, borrowing, rented, booting: Replicas of each kind; `rented` serve.
    """

    now_s: float
    arrived: int
    served: float
    backlog: float
    home: int
    borrowed: int
    borrowing: int
    rented: int
    booting: int

    @property
    def serving(self) -> int:
        """Replicas that served in the tick."""
        return self.home + self.borrowed + self.rented

    @property
    def on_rent(self) -> int:
        """Rented replicas, those that boot included."""
        return self.rented + self.booting


@dataclass(frozen=True, slots=True)
class Orders:
    """How many more (or, below 0, fewer) loans and rented replicas there shall be."""

    loans: int = 0
    rents: int = 0


@dataclass(order=True, slots=True)
class _Rented:
    """A rented replica: when it serves, or its launch fails, and when its bill began."""

    ready_at_s: float
    bill_from_s: float
    fails: bool = field(compare=False, default=False)


class World:
    """The service. One call of `tick` is one step of time.

    Attributes:
        waits: Requests served, by how many ticks after their own.
        arrived: Requests so far.
        loan_s: GPU seconds of loans so far, overhead included.
        rent_s: Billed seconds of rented replicas that were returned.
        idle_s: Seconds of borrowed and rented replicas that served nothing.
        launches, failures, loans, flaps: Counts.
    """

    def __init__(self, params: ServiceSimParams) -> None:
        self._params = params
        self._draw = Random(f"boots {params.seed}")
        self._tick = 0
        self._queue: deque[tuple[int, float]] = deque()
        self._borrowed = 0
        self._borrowing: deque[float] = deque()
        self._rented: list[_Rented] = []
        self._booting: list[_Rented] = []
        self._returned_at_s = -math.inf
        self.backlog = 0.0
        self.arrived = 0
        self.waits: dict[int, float] = {}
        self.loan_s = self.rent_s = self.idle_s = 0.0
        self.launches = self.failures = self.loans = self.flaps = 0

    def tick(self, arrived: int) -> Seen:
        """Let requests arrive and be served; return what can be seen afterwards."""
        params = self._params
        self._mature(self._tick * params.tick_s)
        replicas = params.home + self._borrowed + len(self._rented)
        served = self._serve(arrived, replicas * params.replica_rps * params.tick_s)
        busy = math.ceil(served / (params.replica_rps * params.tick_s) - 1e-9)
        self.idle_s += max(0, replicas - max(params.home, busy)) * params.tick_s
        self.loan_s += (self._borrowed + len(self._borrowing)) * params.tick_s
        self._tick += 1
        return Seen(
            now_s=self._tick * params.tick_s,
            arrived=arrived,
            served=served,
            backlog=self.backlog,
            home=params.home,
            borrowed=self._borrowed,
            borrowing=len(self._borrowing),
            rented=len(self._rented),
            booting=len(self._booting),
        )

    def obey(self, orders: Orders) -> None:
        """Start or end loans and rented replicas.

        Raises:
            ValueError: The orders pass a limit, or end what is not there.
        """
        now_s = self._tick * self._params.tick_s
        on_loan = self._borrowed + len(self._borrowing) + orders.loans
        on_rent = len(self._rented) + len(self._booting) + orders.rents
        if not 0 <= on_loan <= self._params.borrowable:
            raise ValueError(f"{on_loan} loans of {self._params.borrowable} at {now_s} s")
        if not 0 <= on_rent <= self._params.rentable:
            raise ValueError(f"{on_rent} rented of {self._params.rentable} at {now_s} s")
        self._lend(now_s, orders.loans)
        if orders.rents > 0:
            self._launch(now_s, orders.rents)
        elif orders.rents < 0:
            self._return(now_s, -orders.rents)

    def close(self) -> None:
        """Bill what is still rented."""
        now_s = self._tick * self._params.tick_s
        for replica in (*self._rented, *self._booting):
            self._bill(replica, now_s)
        self._rented, self._booting = [], []

    def _mature(self, now_s: float) -> None:
        while self._borrowing and self._borrowing[0] <= now_s:
            self._borrowing.popleft()
            self._borrowed += 1
        while self._booting and self._booting[0].ready_at_s <= now_s:
            replica = self._booting.pop(0)
            if replica.fails:
                self.failures += 1
            else:
                self._rented.append(replica)

    def _serve(self, arrived: int, capacity: float) -> float:
        self.arrived += arrived
        if arrived:
            self._queue.append((self._tick, float(arrived)))
        left = capacity
        while self._queue and left > 0:
            came, count = self._queue[0]
            now = min(count, left)
            left -= now
            wait = self._tick - came
            self.waits[wait] = self.waits.get(wait, 0.0) + now
            if now < count:
                self._queue[0] = (came, count - now)
            else:
                self._queue.popleft()
        served = capacity - left
        self.backlog = max(0.0, self.backlog + arrived - served) if self._queue else 0.0
        return served

    def _lend(self, now_s: float, count: int) -> None:
        if count > 0:
            self.loans += count
            self.loan_s += count * self._params.loan_overhead_s
            self._borrowing.extend([now_s + self._params.loan_s] * count)
        for _ in range(-count):
            if self._borrowing:
                self._borrowing.pop()
            else:
                self._borrowed -= 1

    def _launch(self, now_s: float, count: int) -> None:
        boot = self._params.boot
        if now_s - self._returned_at_s < self._params.flap_s:
            self.flaps += count
        self.launches += count
        for _ in range(count):
            # both draws each time: whether one fails must not shift the others
            takes_s = max(boot.least_s, boot.median_s * math.exp(self._draw.gauss(0, boot.sigma)))
            fails = self._draw.random() < boot.fail_share
            bill_from_s = now_s + boot.alloc_s
            ready_at_s = bill_from_s + (boot.fail_s if fails else takes_s)
            self._booting.append(_Rented(ready_at_s, bill_from_s, fails))
        self._booting.sort()

    def _return(self, now_s: float, count: int) -> None:
        self._returned_at_s = now_s
        for _ in range(count):
            replica = self._booting.pop() if self._booting else self._rented.pop()
            self._bill(replica, now_s)

    def _bill(self, replica: _Rented, now_s: float) -> None:
        if replica.fails or now_s <= replica.bill_from_s:
            return
        billed_s = now_s - replica.bill_from_s + self._params.bill_tail_s
        self.rent_s += max(self._params.bill_least_s, billed_s)
