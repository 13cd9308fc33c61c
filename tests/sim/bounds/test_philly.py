"""The bounds on Philly: the figures that the design was measured with."""

from __future__ import annotations

import pytest

from hybrid.sim.bounds import feasible, migratable, rigid
from hybrid.sim.bounds.work import Work
from hybrid.sim.traces.importers.philly import read_philly
from hybrid.sim.traces.trace import Trace
from tests.sim.realtraces import real_trace

USD_PER_GPU_S = 3.673385 / 3_600
WAIT_S = 1_800.0
VC = ("ee9e8c", "7f04ca")


@pytest.fixture(scope="module")
def philly() -> Trace:
    return read_philly(real_trace("jobs/philly_jobs.csv.gz"))


def case(philly: Trace, gpus: int) -> Work:
    if gpus == 192:
        return Work.of(philly.window(18, 98).only(lambda job: job.user in VC))
    return Work.of(philly.window(24, 84))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpus", "late_share", "usd"),
    [
        (640, 0.0, 60_178),
        (512, 0.0, 272_364),
        (768, 0.0, 2_720),
        (192, 0.0, 286_329),
        (640, 0.02, 24_473),
        (512, 0.02, 234_494),
        (768, 0.02, 0),
        (192, 0.02, 274_501),
    ],
)
def test_what_must_be_rented_when_work_may_move(
    philly: Trace, gpus: int, late_share: float, usd: int
) -> None:
    least = migratable.least_rented_gpu_s(
        case(philly, gpus), gpus, max_wait_s=WAIT_S, late_share=late_share
    )

    assert least * USD_PER_GPU_S == pytest.approx(usd, abs=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpus", "least_usd", "most_usd"), [(192, 309_000, 331_500), (640, 83_000, 102_000)]
)
def test_the_optimum_without_interruption_lies_in_between(
    philly: Trace, gpus: int, least_usd: int, most_usd: int
) -> None:
    work = case(philly, gpus)

    least = rigid.least_rented_gpu_s(work, gpus, max_wait_s=WAIT_S)
    most = feasible.cheapest_plan(work, gpus, max_wait_s=WAIT_S).rented_gpu_s

    assert least_usd <= least * USD_PER_GPU_S <= most * USD_PER_GPU_S <= most_usd
