"""One run from a trace to a result."""

from __future__ import annotations

import time
from collections.abc import Callable

from hybrid.core.collector import collector_paused
from hybrid.sim.engine import Engine
from hybrid.sim.params import SimParams
from hybrid.sim.policies import Policy
from hybrid.sim.results import SimResult, result_of
from hybrid.sim.traces.trace import Trace


def simulate(
    trace: Trace,
    params: SimParams,
    policy: Policy,
    *,
    on_progress: Callable[[int], None] | None = None,
) -> SimResult:
    """Run a trace under a policy and return what it came to.

    Args:
        trace: The jobs.
        params: The simulated site and cloud.
        policy: What decides.
        on_progress: Told how many jobs are done, after each.

    Raises:
        ValueError: A job needs more GPUs than home and the quota have, so it could never end.
    """
    largest = max(trace.jobs, key=lambda job: job.gpus, default=None)
    if largest is not None and largest.gpus > max(params.gpus, params.max_rented_gpus):
        raise ValueError(
            f"job {largest.job_id} of trace {trace.name} needs {largest.gpus} GPUs, and there are "
            f"{params.gpus} at home and {params.max_rented_gpus} that may be rented: give more, "
            f"or leave the job out"
        )
    engine = Engine(trace, params, policy, on_progress)
    began_s = time.perf_counter()
    with collector_paused():  # a run makes no cycles, and much that lives to its end
        engine.run()
    return result_of(engine, wall_s=time.perf_counter() - began_s)
