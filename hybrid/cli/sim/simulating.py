"""Runs what the commands ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hybrid.cli import output, words
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.sim.choosing import chosen_trace
from hybrid.cli.sim.meter import Meter
from hybrid.cli.sim.naming import shared_out

if TYPE_CHECKING:
    from hybrid.sim.named import Named
    from hybrid.sim.params import SimParams
    from hybrid.sim.runs import SimRunsView
    from hybrid.sim.traces.trace import Trace

_TOLD = 50


def chosen_jobs(trace: str, days: str, users: str, share: float | None, site: SimParams) -> Trace:
    """Return the jobs that are meant; those that no place could ever hold are left out, and said.

    Raises:
        TraceError: There are none.
        StopError: None of them could ever run.
    """
    found = shared_out(chosen_trace(trace, days, users), share, site.seed)
    most = max(site.gpus, site.max_rented_gpus)
    fitting = found.fitting(most)
    if left_out := len(found.jobs) - len(fitting.jobs):
        output.say(
            f"{words.count(left_out, 'job')} left out: more GPUs than the {most:,} that one "
            "job can have, at home or rented"
        )
    if not fitting.jobs:
        raise StopError(f"no job of {found.name} could ever run; give --gpus", ExitCode.USAGE)
    return fitting


def simulated(jobs: Trace, site: SimParams, policies: list[Named]) -> SimRunsView:
    """Return what each policy comes to.

    Raises:
        ConfigError: Work could never run.
    """
    from hybrid.core.errors import ConfigError
    from hybrid.sim.run import simulate
    from hybrid.sim.runs import SimRunsView

    total = len(jobs.jobs)
    results = []
    for named in policies:
        policy = named.make(late_share=site.late_share)
        what = f"Simulating {policy.name} on {words.safe(jobs.name)}"
        with Meter(what) as meter:
            try:
                result = simulate(jobs, site, policy, on_progress=_telling(meter, total))
            except ValueError as error:
                raise ConfigError(str(error)) from error
        results.append(result)
    return SimRunsView(params=site, results=tuple(results))


def _telling(meter: Meter, total: int) -> Callable[[int], None]:
    def tell(done: int) -> None:
        # A bar redraws itself a few times a second; more calls only cost time.
        if done % _TOLD == 0:
            meter.show(done, total)

    return tell
