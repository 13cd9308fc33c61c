"""LB-M: the least that must be rented when work may be interrupted and moved at will.

All jobs are poured together. By a time `t` at most `A(t)` GPU-seconds can have been done, since
more has not been asked for, and at least `L(t)` must have been done, since what is left would end
too late. Home does at most `gpus` a second. The least that has to be rented in between is what a
two-barrier regulator adds: run home at full rate below `A`; where that falls short of `L`, rent
the difference. This is optimal for the poured problem, and the poured problem is a relaxation of
the real one: it knows no gangs, no nodes, no boot and no cost of moving.
"""

from __future__ import annotations

from hybrid.sim.bounds.work import Work, done_by, edges


def least_rented_gpu_s(
    work: Work, gpus: int, *, max_wait_s: float, late_share: float = 0.0, step_s: float = 60.0
) -> float:
    """Return LB-M, in GPU-seconds.

    A true lower bound for every policy, with or without knowledge of the future and whatever it
    interrupts or moves, under which EVERY job ends by

        submit + duration + max_wait_s + late_share * duration

    and where rented GPUs are no faster than those at home. So:

    - `late_share = 0` bounds policies under which no job is late by more than `max_wait_s`. That
      holds for those that never interrupt and start everything within `max_wait_s`. It is NO
      bound for a policy that may also be late by a share of the run time: such a policy can be
      cheaper, and some have been.
    - `late_share = phi` bounds those too. It is loose, since it lets somebody who knows the future
      pause each long job for `phi` of its whole length at any time, before that is earned.
    - A policy that breaks its promise for some jobs is bounded only after those have been taken
      off; see `hybrid.sim.bounds.report.allowing_missed`.

    Args:
        work: The jobs.
        gpus: GPUs at home.
        max_wait_s: How late a job may be.
        late_share: How much later it may be, in shares of its run time.
        step_s: The barriers are checked this often. A longer step only loosens the bound.

    Returns:
        GPU-seconds that must be rented, 0 or more.
    """
    if work.count == 0:
        return 0.0
    allowed_s = max_wait_s + late_share * work.duration_s
    last_s = float((work.submit_s + work.duration_s + allowed_s).max())
    at_s = edges(last_s, step_s)
    most = done_by(at_s, work.submit_s, work.duration_s, work.gpus).tolist()
    least = done_by(at_s, work.submit_s + allowed_s, work.duration_s, work.gpus).tolist()
    done = rented = 0.0
    for upper, lower in zip(most[1:], least[1:], strict=True):
        done = min(done + gpus * step_s, upper)
        if done < lower:
            rented += lower - done
            done = lower
    return rented
