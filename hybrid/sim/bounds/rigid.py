"""LB-N: the least that must be rented when every job runs in one place from start to end.

A job either runs at home from some start in `[submit, submit + max_wait]` on, or is rented for at
its full length. Put a price `p(t) >= 0` on a GPU at home at each time: then for ANY prices

    sum over jobs of gpus * min(duration, cheapest price of a start)  -  gpus_at_home * sum of p

is a lower bound (Lagrangian of the capacity at home). Good prices make it a good bound. They begin
as the duals of the flow problem in which nobody waits, and climb from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from hybrid.sim.bounds.migratable import least_rented_gpu_s as migratable_gpu_s
from hybrid.sim.bounds.work import Floats, Ints, Work, done_by, edges

_ROUNDS_WITHOUT_GAIN = 15
"""After so many the step gets smaller and the climb goes on from the best prices so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """What the flow problem without waiting says.

    Attributes:
        price: Of a GPU at home for a second, by slot, shape (K,); 1 is the price of renting.
        home_share: How much of each job it keeps at home, shape (J,).
    """

    price: Floats
    home_share: Floats


def least_rented_gpu_s(
    work: Work,
    gpus: int,
    *,
    max_wait_s: float,
    step_s: float = 600.0,
    round_count: int = 400,
    on_round: Callable[[int, float], None] | None = None,
) -> float:
    """Return LB-N, in GPU-seconds: the best of the climb, and of LB-M without late share.

    A true lower bound for every policy, with or without knowledge of the future, that starts
    EVERY job within `max_wait_s` and then runs it without interruption in one place, where rented
    GPUs are no faster than those at home. It is NO bound for a policy that suspends, moves or
    restarts work, not even once.

    It knows no nodes and no boot: home is one pool of `gpus` GPUs, held by the job as a whole.

    Args:
        work: The jobs.
        gpus: GPUs at home.
        max_wait_s: How late a job may start.
        step_s: Length of the slots of the prices. Any length gives a bound.
        round_count: Most rounds of the climb. Any number gives a bound.
        on_round: Is told the round and the best bound so far, to show progress.

    Returns:
        GPU-seconds that must be rented, 0 or more.
    """
    if work.count == 0:
        return 0.0
    poured = migratable_gpu_s(work, gpus, max_wait_s=max_wait_s)
    relaxed = without_waiting(work, gpus, step_s=step_s)
    climb = _Climb(work, gpus, max_wait_s, step_s)
    best = climb.best_of(relaxed.price, round_count, on_round or _silent)
    return max(0.0, poured, best)


def without_waiting(work: Work, gpus: int, *, step_s: float) -> Relaxed:
    """Solve the flow problem in which each job starts at once, at home or rented, or in parts.

    Times are rounded to slots, so its value is no bound by itself; its prices are good ones to
    begin with and its shares good ones to round.
    """
    first = np.rint(work.submit_s / step_s).astype(np.int64)
    last = np.rint((work.submit_s + work.duration_s) / step_s).astype(np.int64)
    counts: Ints = np.flatnonzero(last > first)  # shorter than a slot: not in the flow
    slots, jobs = int(last.max(initial=0)) + 2, len(counts)
    weight = work.gpus[counts]
    # Flow along time, at most `gpus` a slot; a job is a shortcut that carries its GPUs along.
    rows = np.concatenate([first[counts], last[counts], np.arange(slots), np.arange(1, slots)])
    columns = np.concatenate(
        [np.arange(jobs), np.arange(jobs), jobs + np.arange(slots), jobs + np.arange(slots - 1)]
    )
    values = np.concatenate([-weight, weight, np.ones(slots), -np.ones(slots - 1)])
    solved = linprog(
        np.concatenate([-work.gpu_s[counts], np.zeros(slots)]),
        A_eq=sp.csr_matrix((values, (rows, columns)), shape=(slots, jobs + slots)),
        b_eq=np.zeros(slots),
        bounds=np.array([(0.0, 1.0)] * jobs + [(0.0, float(gpus))] * slots),
        method="highs",
    )
    share = np.ones(work.count)
    if solved.x is None:  # cannot fail (all zero is feasible); if it does, prices start at 0
        return Relaxed(np.zeros(slots), share)
    share[counts] = solved.x[:jobs]
    return Relaxed(np.maximum(0.0, -solved.upper.marginals[jobs:] / step_s), share)


class _Climb:
    """Climbs over prices of home, by slot.

    Within a slot the price is constant, so what a start costs is linear in the start between the
    times at which the start or the end meets an edge: the cheapest start is one of those.
    """

    def __init__(self, work: Work, gpus: int, max_wait_s: float, step_s: float) -> None:
        self._work, self._gpus, self._step_s = work, gpus, step_s
        self._edges = edges(work.end_s + max_wait_s + step_s, step_s)
        starts = _candidate_starts(work, max_wait_s, step_s)
        self._starts = starts
        self._from_slot, self._from_part = _split(starts, step_s)
        self._to_slot, self._to_part = _split(starts + work.duration_s[:, None], step_s)
        self._rows = np.arange(work.count)

    def bound(self, price: Floats) -> tuple[float, Floats]:
        """Return the bound that prices give, and by how much home is overbooked, by slot."""
        paid = np.concatenate([[0.0], np.cumsum(price)]) * self._step_s
        rate = np.append(price, 0.0) * self._step_s
        until = paid[self._to_slot] + rate[self._to_slot] * self._to_part
        cost = until - (paid[self._from_slot] + rate[self._from_slot] * self._from_part)
        choice = cost.argmin(axis=1)
        cheapest = cost[self._rows, choice]
        work = self._work
        at_home = cheapest < work.duration_s
        chosen = np.where(at_home, cheapest, work.duration_s)
        value = float((work.gpus * chosen).sum()) - self._gpus * float(paid[-1])
        used = done_by(
            self._edges,
            self._starts[self._rows, choice][at_home],
            work.duration_s[at_home],
            work.gpus[at_home],
        )
        return value, np.diff(used) - self._gpus * self._step_s

    def best_of(
        self, price: Floats, round_count: int, on_round: Callable[[int, float], None]
    ) -> float:
        """Return the best bound found in some rounds of Polyak's rule."""
        slots = len(self._edges) - 1
        prices = np.zeros(slots)
        prices[: len(price)] = price[:slots]
        best, best_prices = -np.inf, prices
        direction, reach, idle = np.zeros(slots), 1.0, 0
        for number in range(round_count):
            value, overbooked = self.bound(prices)
            if value > best + 1e-7 * abs(best) or not np.isfinite(best):
                best, best_prices, idle = value, prices, 0
            else:
                idle += 1
            on_round(number, best)
            if idle >= _ROUNDS_WITHOUT_GAIN:
                reach, idle = reach * 0.6, 0
                prices, direction = best_prices, np.zeros(slots)
                if reach < 1e-3:
                    break
                continue
            uphill = np.where((prices <= 0.0) & (overbooked < 0.0), 0.0, overbooked)
            direction = 0.7 * direction + 0.3 * uphill
            # Polyak's step, to a target a little above what has been reached.
            gap = best + abs(best) * 0.05 * reach - value
            length = gap / max(1e-9, float((direction * direction).sum()))
            prices = np.maximum(0.0, prices + length * direction)
        return best


def _candidate_starts(work: Work, max_wait_s: float, step_s: float) -> Floats:
    """Return starts of which one is the cheapest under any prices, shape (J, C)."""
    submit, end = work.submit_s, work.submit_s + work.duration_s
    waits = [np.zeros(work.count)]
    if max_wait_s > 0:
        waits.append(np.full(work.count, max_wait_s))
        first = np.ceil(submit / step_s) * step_s - submit
        last = np.ceil(end / step_s) * step_s - end
        for number in range(int(max_wait_s // step_s) + 1):
            waits += [
                np.clip(first + number * step_s, 0.0, max_wait_s),
                np.clip(last + number * step_s, 0.0, max_wait_s),
            ]
    starts: Floats = submit[:, None] + np.stack(waits, axis=1)
    return starts


def _split(at_s: Floats, step_s: float) -> tuple[Ints, Floats]:
    """Return the slot of each time and how far into it it is, from 0 to 1."""
    slot = (at_s / step_s).astype(np.int64)
    return slot, at_s / step_s - slot


def _silent(_number: int, _best: float) -> None:
    pass
