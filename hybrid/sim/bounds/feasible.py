"""UB: what somebody who knows the future would pay with one plan that can really be carried out.

The other side of the bounds: the true optimum lies between. A gap to UB is certain waste; a gap
between a bound and UB may be no more than the bound's own looseness.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybrid.sim.bounds.rigid import without_waiting
from hybrid.sim.bounds.work import Floats, Ints, Work

_DOUBTFUL = 0.3
"""Rank of what the flow problem would rent, in shares of its duration. Tried on Philly 640."""
_RISE = 1.1
"""How much the rank of a job rises each time it finds no place."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """When each job starts at home, or that it is rented for.

    Attributes:
        start_s: Shape (J,); NaN for a job that is rented for.
        rented_gpu_s: What those cost, in GPU-seconds.
    """

    start_s: Floats
    rented_gpu_s: float


def cheapest_plan(
    work: Work,
    gpus: int,
    *,
    max_wait_s: float,
    step_s: float = 600.0,
    slot_s: float = 60.0,
    start_count: int = 13,
    round_count: int = 12,
    on_phase: Callable[[str], None] | None = None,
) -> Plan:
    """Return the cheapest of a few plans that start every job in time and never interrupt one.

    So its cost is an upper bound on the best that can be done with knowledge of the future, by
    policies that interrupt work and by those that do not. It is no bound for any single policy:
    one that cannot see the future may well pay more, and one that may be late by a share of the
    run time as well may pay less.

    Home is one pool of `gpus` GPUs, so nodes and their fragments are not in it, and neither is
    boot. A plan places the jobs in order of rank, each at the first of a few starts in its window
    at which it fits to its end. Rank is the duration, since a long job is the hardest to place
    late; less for those that the flow problem would not keep at home. Those that found no place
    move up a little for the next plan.

    Args:
        work: The jobs.
        gpus: GPUs at home.
        max_wait_s: How late a job may start.
        step_s: Length of the slots of the flow problem.
        slot_s: Length of the slots in which places are booked; whole ones, so it stays feasible.
        start_count: How many starts are tried for each job.
        round_count: How many plans are made.
        on_phase: Is told what goes on.
    """
    best = Plan(np.full(work.count, np.nan), work.total_gpu_s)
    if work.count == 0:
        return best
    say = on_phase or _silent
    say("flow problem without waiting")
    share = without_waiting(work, gpus, step_s=step_s).home_share
    rank = work.duration_s * np.where(share > 0.5, 1.0, _DOUBTFUL)
    waits = np.linspace(0.0, max_wait_s, start_count if max_wait_s > 0 else 1)
    for number in range(round_count):
        say(f"UB, plan {number + 1} of {round_count}")
        order = np.argsort(-rank, kind="stable")
        start_s = _placed(work, gpus, order, waits, slot_s)
        is_rented = np.isnan(start_s)
        rented = float(work.gpu_s[is_rented].sum())
        if rented < best.rented_gpu_s:
            best = Plan(start_s, rented)
        rank = np.where(is_rented, rank * _RISE, rank)
    return best


def _placed(work: Work, gpus: int, order: Ints, waits: Floats, slot_s: float) -> Floats:
    """Return the start of each job that found a place, and NaN for the others."""
    used = np.zeros(int((work.end_s + float(waits[-1])) / slot_s) + 3, dtype=np.int64)
    start_s = np.full(work.count, np.nan)
    room = [gpus - int(count) for count in work.gpus]
    first_s, duration_s = work.submit_s.tolist(), work.duration_s.tolist()
    offsets = waits.tolist()
    for job in order.tolist():
        if room[job] < 0:
            continue
        for wait in offsets:
            begin = first_s[job] + wait
            # Every slot it touches is its own from edge to edge.
            place = used[int(begin // slot_s) : math.ceil((begin + duration_s[job]) / slot_s)]
            if place.max() <= room[job]:
                place += int(work.gpus[job])
                start_s[job] = begin
                break
    return start_s


def _silent(_phase: str) -> None:
    pass
