"""What cannot be seen is not ended: each source goes silent in turn.

Items 8, 9 and 36 of the reliability contract, and a cloud that answers nothing for an hour, or
for a day, while another works.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid.core.models import InstanceState
from tests.world.quick import STEP_S, quick_params
from tests.world.ray import all_done
from tests.world.world import World, stranger_spec, two_clouds

GPU = {"GPU": 1.0}
S = InstanceState
HOUR_S = 3600.0


def make_world(folder: Path, *, lasts_s: float) -> World:
    """Return a world with one rented node of each of two clouds at work."""
    world = World(folder, params=quick_params(), offers=list(two_clouds()), step_s=STEP_S)
    for cloud in world.clouds.values():
        cloud.boot_s = 10.0
    world.cloud.stock = 1
    world.ray.submit(8, GPU, 1e6)
    world.ray.submit(8, GPU, lasts_s)
    world.run(100, until=lambda: [r.state for r in world.rows()] == [S.RUNNING] * 2)
    return world


def silence_ray(world: World, *, is_on: bool) -> None:
    world.ray.is_silent = is_on


def silence_list(world: World, *, is_on: bool) -> None:
    world.cloud.failing = {"list"} if is_on else set()


def silence_offers(world: World, *, is_on: bool) -> None:
    world.cloud.failing = {"offers"} if is_on else set()


def silence_jobs(world: World, *, is_on: bool) -> None:
    world.jobs.is_silent = is_on


SOURCES = [
    # Who goes silent, whose nodes must stay, and whether orphans of `sim` may be ended.
    pytest.param(silence_ray, {"sim", "other"}, True, id="ray"),
    pytest.param(silence_list, {"sim"}, False, id="list"),
    pytest.param(silence_offers, set(), True, id="offers"),
    pytest.param(silence_jobs, set(), True, id="jobs"),
]


@pytest.mark.parametrize(("silence", "kept", "is_collected"), SOURCES)
def test_a_silent_source_stops_what_depends_on_it_and_nothing_else(
    fast_path: Path, silence: Callable[..., None], kept: set[str], is_collected: bool
) -> None:
    world = make_world(fast_path, lasts_s=60.0)
    stranger = world.cloud.create(world.offers[0], stranger_spec(world))
    stranger.never_joins = True
    silence(world, is_on=True)

    world.run(500)

    staying = {m.offer.provider for m in world.alive() if m is not stranger}
    assert staying == kept
    drained = {world.machines_of(name)[0].offer.provider for name, _ in world.ray.drains}
    assert drained == {"sim", "other"} - kept
    assert (stranger.ended_by == "terminate") is is_collected
    silence(world, is_on=False)
    world.run(400, until=world.is_quiet)
    assert stranger.ended_by == "terminate"


@pytest.mark.slow
@pytest.mark.parametrize("what", ["list", "offers", "terminate", "extend", "launch"])
def test_a_cloud_whose_calls_of_one_kind_fail_for_an_hour_is_served_again(
    fast_path: Path, what: str
) -> None:
    """Nothing is rented twice, nothing stays, and the other cloud works on."""
    world = make_world(fast_path, lasts_s=60.0)
    world.may_kill_busy = what == "extend"
    world.cloud.failing = {what}
    late = []
    for _ in range(4):
        late += world.ray.submit(4, GPU, 100.0)
        world.run(HOUR_S / 4)

    world.cloud.failing = set()

    world.run(900, until=all_done(late))
    world.run(900, until=world.is_quiet)
    world.assert_nothing_left()


@pytest.mark.slow
def test_an_hour_of_silence_from_one_cloud_costs_the_other_nothing(fast_path: Path) -> None:
    """Its machines end with their lease, as designed; all work is done by the other cloud."""
    world = make_world(fast_path, lasts_s=60.0)
    world.cloud.is_silent = True
    done_s = []
    for _ in range(6):
        tasks = world.ray.submit(4, GPU, 30.0)
        done_s.append(world.run(HOUR_S / 6, until=all_done(tasks)))
        world.run(HOUR_S / 6 - done_s[-1])

    assert max(done_s) < 200
    assert world.clouds["sim"].alive() == []
    assert {m.ended_by for m in world.clouds["sim"].machines.values()} == {"lease"}
    world.cloud.is_silent = False
    world.run(300, until=world.is_quiet)
    world.assert_nothing_left()


@pytest.mark.slow
def test_after_a_day_without_a_word_nothing_is_gone_its_place_is_held_and_people_are_told(
    fast_path: Path,
) -> None:
    world = make_world(fast_path, lasts_s=60.0)
    [row] = [r for r in world.rows() if r.offer.provider == "sim"]
    world.cloud.is_silent = True
    world.run(HOUR_S)
    # A day in longer ticks: nothing else happens in it.
    world.step_s = 60.0

    world.run(24 * HOUR_S)

    now = world.ledger.instance(row.instance_id)
    assert now is not None
    assert not now.is_ended, "only the cloud can say that"
    assert world.loop.commitment.node_count == 1
    assert "instance_terminated" in world.kinds(), "the other one came home meanwhile"
    world.desk.publish()
    [alarm] = [a for a in world.desk.status().alarms if a.code == "source_blind"]
    assert alarm.subject == "provider:sim"
    assert world.desk.status().at_s - alarm.since_at_s >= 24 * HOUR_S - 60
    world.cloud.is_silent = False
    world.run(60, until=world.is_quiet)
    world.assert_nothing_left()
