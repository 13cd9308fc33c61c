"""What even somebody who knows the future must rent."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from hybrid.sim.services.params import ServiceSimParams


def fluid_bound_gpu_h(counts: Sequence[int], params: ServiceSimParams) -> float:
    """Return GPU hours that anybody must add to home to serve every request in time.

    Knows the future, boots and borrows in no time and in fractions, pays for work alone. Home
    works whenever something waits; the rest is served at the last moment. A true bound for all
    requests in time; who lets some be late may pay less.
    """
    home = params.home * params.replica_rps * params.tick_s
    slack = int(params.wait_slo_s / params.tick_s + 1e-9)
    waiting: deque[float] = deque()
    added = 0.0
    for count in counts:
        waiting.append(float(count))
        left = home
        for place in range(len(waiting)):
            now = min(waiting[place], left)
            waiting[place] -= now
            left -= now
        if len(waiting) > slack:
            added += waiting.popleft()
    return added / params.replica_rps / 3600
