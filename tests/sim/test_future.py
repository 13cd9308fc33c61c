"""No policy knows what is to come: another future changes nothing that was done before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid.core.policy.jobs.params import PROFILES, ProfileName
from hybrid.core.policy.plan import Action
from hybrid.sim.engine import Engine
from hybrid.sim.params import SimParams
from hybrid.sim.policies import Reservoir
from hybrid.sim.traces.trace import Trace
from tests.sim.watched import random_trace

CUT_S = 60_000.0


def _run(trace: Trace, profile: ProfileName) -> Engine:
    engine = Engine(trace, SimParams(gpus=8), Reservoir.of(profile), log=[])
    engine.run()
    return engine


def _before(engine: Engine) -> list[tuple[float, Action]]:
    return [(at_s, action) for at_s, action in engine.log or [] if at_s < CUT_S]


@pytest.mark.slow
@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_happens_later_changes_no_earlier_action(profile: ProfileName, seed: int) -> None:
    trace = random_trace(seed, most_gpus=8)
    known = _run(trace, profile)
    unfinished = {j.trace.job_id for j in known.jobs.values() if (j.ended_at_s or 0) > CUT_S}
    changed = [
        replace(job, duration_s=3 * job.duration_s + 7_200)
        if job.job_id in unfinished and job.submit_s < CUT_S
        else job
        for job in trace.jobs
        if job.submit_s < CUT_S or int(job.job_id[1:]) % 2
    ]
    assert changed != list(trace.jobs)
    other = _run(Trace.of("another future", changed), profile)

    assert _before(other) == _before(known)
    assert len(_before(known)) > 10
