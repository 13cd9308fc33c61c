"""Exact optima of small instances, by a mixed-integer program (HiGHS)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from hybrid.sim.bounds.work import Ints, Work

STEP_S = 60.0


@dataclass(frozen=True)
class Instance:
    """A small problem whose times are whole minutes, so that the grid loses nothing."""

    work: Work
    gpus: int
    max_wait_s: float

    @property
    def first(self) -> Ints:
        return np.rint(self.work.submit_s / STEP_S).astype(np.int64)

    @property
    def length(self) -> Ints:
        return np.rint(self.work.duration_s / STEP_S).astype(np.int64)


def instance(seed: int) -> Instance:
    """Return a random instance with a heavy tail and gangs."""
    draw = np.random.default_rng(seed)
    count = int(draw.integers(5, 22))
    work = Work(
        draw.integers(0, 40, count).astype(np.float64) * STEP_S,
        np.rint(draw.lognormal(2.0, 1.1, count)).clip(1.0, 60.0).astype(np.float64) * STEP_S,
        draw.choice([1.0, 1.0, 1.0, 2.0, 4.0], count),
    )
    return Instance(work, int(draw.integers(4, 9)), float(draw.integers(0, 6)) * STEP_S)


def rigid_gpu_s(given: Instance) -> float:
    """Return the least to rent when jobs are not interrupted."""
    waits = int(given.max_wait_s / STEP_S) + 1
    choices = [(job, wait) for job in range(given.work.count) for wait in range(waits)]
    slots = int((given.first + given.length).max()) + waits
    rows = np.zeros((slots + given.work.count, len(choices)))
    for column, (job, wait) in enumerate(choices):
        begin = given.first[job] + wait
        rows[begin : begin + given.length[job], column] = given.work.gpus[job]
        rows[slots + job, column] = 1
    most = np.concatenate([np.full(slots, given.gpus), np.ones(given.work.count)])
    gain = np.array([-given.work.gpu_s[job] for job, _ in choices])
    return given.work.total_gpu_s + _least(gain, LinearConstraint(rows, -np.inf, most))


def migratable_gpu_s(given: Instance, late_share: float) -> float:
    """Return the least to rent when jobs may stop and move at the end of any minute.

    What a job may be late is cut to whole minutes, so this is at or above the true optimum.
    """
    jobs = given.work.count
    allowed_s = given.max_wait_s + late_share * given.work.duration_s
    ends = given.first + given.length + np.floor(allowed_s / STEP_S + 1e-9).astype(np.int64)
    places = [
        (job, slot, is_rented)
        for job in range(jobs)
        for slot in range(given.first[job], ends[job])
        for is_rented in (False, True)
    ]
    slots = int(ends.max())
    home = np.zeros((slots, len(places)))
    once = np.zeros((jobs * slots, len(places)))
    whole = np.zeros((jobs, len(places)))
    cost = np.zeros(len(places))
    for column, (job, slot, is_rented) in enumerate(places):
        once[job * slots + slot, column] = whole[job, column] = 1
        if is_rented:
            cost[column] = given.work.gpus[job] * STEP_S
        else:
            home[slot, column] = given.work.gpus[job]
    once = once[once.any(axis=1)]
    return _least(
        cost,
        LinearConstraint(home, -np.inf, given.gpus),
        LinearConstraint(once, -np.inf, 1),
        LinearConstraint(whole, given.length, given.length),
    )


def _least(cost: np.typing.NDArray[np.float64], *constraints: LinearConstraint) -> float:
    solved = milp(
        cost, constraints=constraints, integrality=np.ones(len(cost)), bounds=Bounds(0, 1)
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)
