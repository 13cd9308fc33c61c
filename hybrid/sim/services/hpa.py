"""Baselines: the autoscaler of Kubernetes and KEDA's, with their own rules. They only rent."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from hybrid.sim.services.params import ServiceSimParams
from hybrid.sim.services.world import Orders, Seen

_TOLERANCE = 0.1 + 1e-9
"""Kubernetes' 10 %, as exact as floats are."""
_UP_COUNT, _UP_RATIO = 4, 2.0
"""Default scale-up policy: four pods or 100 % in one period, whichever is more."""


@dataclass(frozen=True, slots=True)
class HpaTuning:
    """One point of the grid.

    Attributes:
        target: Share of the capacity that should be in use.
        metric: `busy`: capacity in use, never above 1. `rate`: requests that come. `queue`:
            those, and the backlog as if it had to be served within `drain_s`.
        mean_s: The metric is a mean over this time.
        hold_s: Down-stabilisation window: the highest wish in it counts.
        drain_s: See `metric`.
    """

    target: float
    metric: Literal["busy", "rate", "queue"] = "rate"
    mean_s: float = 60.0
    hold_s: float = 300.0
    drain_s: float = 30.0


class Hpa:
    """Kubernetes' horizontal pod autoscaler, v2, with its default behaviour.

    A ratio within 10 % of the target changes nothing. Pods that boot count as idle when it
    scales up, and not at all when it scales down. It decides every tick of 10 s, which is more
    often than the default of 15 s and so in its favour.

    Args:
        params: The simulated service.
        tuning: A point of the grid.
        every_s: How often it decides.
        name: What people call it.
        borrows: Its replicas are borrowed at home as far as possible, and only the rest is
            rented: shows what the loan alone does, without the policy.
    """

    def __init__(
        self,
        params: ServiceSimParams,
        tuning: HpaTuning,
        *,
        every_s: float = 10.0,
        name: str = "hpa",
        borrows: bool = False,
    ) -> None:
        self.name = name
        self._params = params
        self._tuning = tuning
        self._every_s = every_s
        self._borrows = borrows
        self._used: deque[float] = deque(maxlen=max(1, round(tuning.mean_s / params.tick_s)))
        self._wishes: deque[tuple[float, int]] = deque()
        self._backlog_before = 0.0

    @property
    def settings(self) -> Mapping[str, float | str]:
        """Its tuning."""
        tuning = self._tuning
        return {
            "target": tuning.target,
            "metric": tuning.metric,
            "mean_s": tuning.mean_s,
            "hold_s": tuning.hold_s,
        }

    def decide(self, seen: Seen) -> Orders:
        """Return what its rules order."""
        self._used.append(self._use(seen))
        self._backlog_before = seen.backlog
        if seen.now_s % self._every_s:
            return Orders()
        used = sum(self._used) / len(self._used)
        everything = seen.home + seen.borrowed + seen.borrowing + seen.on_rent
        wish = self._stable(seen.now_s, everything, max(seen.home, self._wish(seen, used)))
        beyond = max(0, min(wish, everything + max(_UP_COUNT, everything)) - seen.home)
        loans = min(beyond, self._params.borrowable) if self._borrows else 0
        rents = min(beyond - loans, self._params.rentable)
        return Orders(
            loans=loans - seen.borrowed - seen.borrowing if self._borrows else 0,
            rents=rents - seen.on_rent,
        )

    def _use(self, seen: Seen) -> float:
        """Return the replicas that the tick's requests kept, or would have kept, busy."""
        per_replica = self._params.replica_rps * self._params.tick_s
        if self._tuning.metric == "busy":
            return seen.served / per_replica
        queue = 0.0
        if self._tuning.metric == "queue":
            queue = self._backlog_before * self._params.tick_s / self._tuning.drain_s
        return (seen.arrived + queue) / per_replica

    def _wish(self, seen: Seen, used: float) -> int:
        ready = max(1, seen.serving)
        everything = max(1, seen.home + seen.borrowed + seen.borrowing + seen.on_rent)
        ratio = used / ready / self._tuning.target
        if ratio > 1.0 and everything > ready:  # pods that boot count as idle
            ratio = used / everything / self._tuning.target
            if ratio < 1.0 + _TOLERANCE:
                return everything
            return math.ceil(ratio * everything - 1e-9)
        if abs(ratio - 1.0) <= _TOLERANCE:
            return everything
        return math.ceil(ratio * ready - 1e-9)

    def _stable(self, now_s: float, current: int, wish: int) -> int:
        self._wishes.append((now_s, wish))
        while self._wishes[0][0] <= now_s - self._tuning.hold_s:
            self._wishes.popleft()
        return max(wish, min(current, max(count for _, count in self._wishes)))


class Keda(Hpa):
    """KEDA: every 30 s (its default) an external metric per replica, through the same HPA.

    Such a metric is divided by all replicas, those that boot included, and a queue has a
    trigger of its own; the higher wish counts. Its cooldown is about the last replica only.
    """

    def __init__(self, params: ServiceSimParams, tuning: HpaTuning) -> None:
        super().__init__(params, tuning, every_s=30.0, name="keda")
        self._limit = params.replica_rps * params.wait_slo_s

    def _wish(self, seen: Seen, used: float) -> int:
        everything = max(1, seen.home + seen.on_rent)
        wishes = (
            _external(used / self._tuning.target, everything),
            _external(seen.backlog / self._limit, everything),
        )
        return max(wishes)


def _external(replicas: float, current: int) -> int:
    """Return the wish for an average-value metric that asks for so many replicas."""
    if abs(replicas / current - 1.0) <= _TOLERANCE:
        return current
    return math.ceil(replicas - 1e-9)


_TARGETS = (0.4, 0.5, 0.6, 0.65, 0.7, 0.74, 0.78, 0.82, 0.86, 0.9)


def hpa_grid() -> Iterator[HpaTuning]:
    """Yield every point at which the HPA is tried."""
    for metric in ("busy", "rate", "queue"):
        for mean_s in (30.0, 60.0):
            for hold_s in (300.0, 600.0):
                for target in _TARGETS:
                    yield HpaTuning(target, metric, mean_s, hold_s)


def keda_grid() -> Iterator[HpaTuning]:
    """Yield every point at which KEDA is tried."""
    for mean_s in (60.0, 120.0):
        for hold_s in (300.0, 600.0):
            for target in _TARGETS:
                yield HpaTuning(target, "rate", mean_s, hold_s)
