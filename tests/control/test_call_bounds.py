"""How often a cloud is called, whatever happens: a sold-out day, an hour of errors.

Items 16 and 17 of the reliability contract, in the whole loop with the retry engine in it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.control.calling import CallLimits
from hybrid.core.errors import (
    AuthError,
    CapacityError,
    ProviderError,
    QuotaError,
    ThrottledError,
    TransientError,
)
from hybrid.core.models import InstanceState
from tests.world.quick import quick_params
from tests.world.world import World, make_offer, two_clouds

GPU = {"GPU": 1.0}
S = InstanceState
HOUR_S = 3600.0
STEP_S = 15.0
BASE_S, CAP_S = 180.0, 1800.0


def make_world(folder: Path) -> World:
    params = quick_params(tick_s=STEP_S, backoff_base_s=BASE_S, backoff_cap_s=CAP_S)
    world = World(folder, params=params, offers=list(two_clouds()), step_s=STEP_S, is_calling=True)
    for cloud in world.clouds.values():
        cloud.boot_s = 10.0
    world.ray.submit(8, GPU, 1e6)
    return world


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [
        CapacityError("sold out", provider="sim"),
        QuotaError("quota", provider="sim"),
        AuthError("who are you", provider="sim"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_an_offering_that_refuses_for_half_a_day_is_asked_now_and_then(
    fast_path: Path, error: ProviderError
) -> None:
    """And the next offer has the work in the same tick."""
    world = make_world(fast_path)
    world.cloud.launch_faults = [error] * 10_000
    hours = 12
    for _ in range(hours):
        world.ray.submit(8, GPU, 600.0)
        world.run(HOUR_S)

    calls = world.cloud.calls.count("launch")
    assert 2 <= calls <= 5 + hours * HOUR_S / (CAP_S / 2)
    assert len(world.clouds["other"].machines) >= hours
    assert world.cloud.machines == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [TransientError("500", provider="sim"), ThrottledError("slow down", provider="sim")],
    ids=lambda e: type(e).__name__,
)
def test_an_hour_of_errors_keeps_the_calls_under_their_rates(
    fast_path: Path, error: ProviderError
) -> None:
    world = make_world(fast_path)
    world.cloud.launch_faults = [error] * 100_000
    world.ray.submit(400, GPU, 60.0)
    began_s = world.clock.monotonic_s()

    world.run(HOUR_S)

    lasted_s = world.clock.monotonic_s() - began_s
    for kind, rate in CallLimits().rates.items():
        most = rate.burst + rate.per_s * lasted_s
        assert world.cloud.calls.count(kind) <= most, kind
    # Far below it: what fails waits for its turn in the tick, not for the bucket.
    assert world.cloud.calls.count("launch") <= lasted_s / STEP_S * 3 * 3


def test_a_storm_of_launches_never_keeps_us_from_ending_what_costs_money(fast_path: Path) -> None:
    """Terminate has a bucket of its own: the launches of the same cloud are all throttled."""
    world = make_world(fast_path)
    world.cloud.offer_list = [make_offer(offer_id="sim/a4")]
    world.ray.submit(4, GPU, 30.0)
    world.run(200, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    [machine] = world.cloud.machines.values()
    world.cloud.launch_faults = [ThrottledError("slow down", provider="sim")] * 100_000
    world.ray.submit(400, {"GPU": 4.0}, 60.0)
    world.desk.drain(machine.spec.instance_id, deadline_s=0.0, owner="ann")
    world.may_kill_busy = True

    used_s = world.run(300, until=lambda: machine.ended_by == "terminate")

    assert used_s <= 4 * STEP_S
