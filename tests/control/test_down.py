"""`hybrid down`: everything rented comes home and is proved gone before the base goes.

Crashes at every point of it are in test_crashes.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.core.lifecycle import Fact
from hybrid.core.models import InstanceState, JobSpec, JobState
from tests.world.cloud import Machine
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World, make_offer, stranger_spec

GPU = {"GPU": 1.0}
S = InstanceState


def make_world(folder: Path, *, count: int = 1, lasts_s: float = 5000.0) -> World:
    """Return a world with rented nodes at work."""
    world = World(folder, params=quick_params(), step_s=STEP_S)
    world.cloud.boot_s = 10.0
    world.ray.submit(8, GPU, 50_000.0)
    world.ray.submit(4 * count, GPU, lasts_s)
    running = [S.RUNNING] * count
    world.run(100, until=lambda: [r.state for r in world.rows()] == running)
    return world


def down(world: World, *, drain_s: float = 0.0, within_s: float = 600.0) -> float:
    world.desk.close(drain_s=drain_s, owner="test")
    used_s = world.run(within_s, until=lambda: world.loop.is_done)
    assert world.is_quiet()
    assert world.loop.left_behind == []
    assert not world.head.is_up
    assert world.fleet.joined == set()
    return used_s


def test_down_ends_work_at_once_without_a_drain_time(fast_path: Path) -> None:
    world = make_world(fast_path, count=2)

    used_s = down(world)

    assert used_s <= 3 * STEP_S
    assert {row.problem for row in world.rows()} == {"the cloud says it is gone"}


def test_down_with_a_drain_time_lets_work_finish(fast_path: Path) -> None:
    world = make_world(fast_path, lasts_s=60.0)

    used_s = down(world, drain_s=500.0)

    assert 50.0 <= used_s <= 90.0
    assert world.ray.killed_busy == []


def test_down_waits_for_work_no_longer_than_it_was_told(fast_path: Path) -> None:
    world = make_world(fast_path)

    used_s = down(world, drain_s=100.0)

    assert 100.0 <= used_s <= 120.0


def test_an_idle_node_leaves_before_the_drain_time_is_over(fast_path: Path) -> None:
    world = make_world(fast_path, lasts_s=20.0)
    world.desk.pause("in", owner="ann")
    world.run(40)

    assert down(world, drain_s=500.0) < 60.0


def test_down_ends_a_booting_instance_although_there_is_drain_time(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.never_joins = True
    world.ray.submit(4, GPU, 5000.0)
    world.run(100, until=lambda: len(world.machines()) == 2)

    world.desk.close(drain_s=200.0, owner="test")
    world.run(15)

    assert [r.state for r in world.rows()] == [S.DRAINING, S.TERMINATED]
    world.run(300, until=lambda: world.loop.is_done)


@pytest.mark.parametrize("is_created", [True, False], ids=["created", "never-created"])
def test_down_settles_a_create_call_without_an_answer(fast_path: Path, is_created: bool) -> None:
    world = make_world(fast_path)
    world.cloud.list_lag_s, world.cloud.hide_lists = 20.0, 2
    world.cloud.failing = {"launch"}
    if is_created:
        world.cloud.failing = set()
        world.cloud.launch_faults = ["lost"]
    world.ray.submit(4, GPU, 5000.0)
    world.run(100, until=lambda: len(world.rows()) == 2)
    assert world.rows()[1].state is S.REQUESTED
    launches = world.calls("launch")

    down(world)

    assert world.calls("launch") == launches, "no create call is repeated while going down"
    assert world.rows()[1].state is S.TERMINATED


def test_down_ends_a_lost_instance_and_one_that_was_quarantined(fast_path: Path) -> None:
    world = make_world(fast_path, count=3)
    first, second, _ = world.rows()
    world.loop.book.apply(first, Fact.MISSING)
    world.loop.book.apply(second, Fact.LAUNCH_ACCEPTED)
    assert [r.quarantine != "" for r in world.rows()] == [False, True, False]

    down(world)


def test_down_waits_for_a_silent_cloud_and_says_so(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.is_silent = True
    world.desk.close(drain_s=0.0, owner="test")

    world.run(300)

    assert not world.loop.is_done
    assert "provider:sim cannot be read, so nothing of it is proved gone" in world.loop.phase
    assert world.head.is_up, "the base stays until everything rented is proved gone"
    world.cloud.is_silent = False
    world.run(100, until=lambda: world.loop.is_done)


def test_down_with_nothing_rented_waits_for_a_silent_cloud_too(fast_path: Path) -> None:
    """What a silent cloud still has is unknown: there may be orphans."""
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.run(20)
    world.cloud.is_silent = True
    world.desk.close(drain_s=0.0, owner="test")
    world.run(50)
    assert world.loop.phase == "waiting for provider:sim: what it still has is unknown"

    world.cloud.is_silent = False
    world.run(50, until=lambda: world.loop.is_done)


def test_down_works_with_a_silent_ray(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.ray.is_silent = True

    down(world, drain_s=60.0)


def test_down_tidies_each_cloud_once_when_nothing_is_rented_any_more(fast_path: Path) -> None:
    world = make_world(fast_path)

    down(world)

    assert world.cloud.calls.count("tidy") == 1
    assert world.cloud.calls.index("tidy") > world.cloud.calls.index("terminate")


def test_down_goes_on_when_a_cloud_cannot_be_tidied(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.failing = {"tidy"}

    down(world)

    (event,) = [e for e in world.ledger.events(limit=10_000) if e.kind == "tidy_failed"]
    assert event.subject == "sim"


def test_down_works_with_a_slow_cloud(fast_path: Path) -> None:
    world = make_world(fast_path, count=2)
    world.cloud.ends_slowly_s = 90.0

    assert down(world) >= 90.0


def test_down_ends_strangers_with_our_tags_too(fast_path: Path) -> None:
    world = make_world(fast_path)
    stranger: Machine = world.cloud.create(make_offer(), stranger_spec(world))
    stranger.never_joins = True
    world.desk.close(drain_s=0.0, owner="test")
    world.run(15)
    assert world.loop.phase == "ending 1 unknown instances that carry our tags"

    world.run(100, until=lambda: world.loop.is_done)

    assert not world.cloud.is_alive(stranger)


def test_down_twice_is_down_and_the_second_one_may_hurry(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.desk.close(drain_s=1000.0, owner="test")
    world.run(50)
    assert not world.loop.is_done

    assert down(world) <= 3 * STEP_S


def test_asking_again_only_watches(fast_path: Path) -> None:
    """Or Ctrl-C and `hybrid down` would end the work that `--drain 2h` promised to spare."""
    world = make_world(fast_path, lasts_s=60.0)
    world.desk.close(drain_s=500.0, owner="test")
    world.run(20)
    before = world.ledger.mode()

    answer = world.desk.close(drain_s=None, owner="another")

    assert "already" in answer.message
    assert world.ledger.mode() == before
    world.run(200, until=lambda: world.loop.is_done)
    assert world.ray.killed_busy == []
    assert world.kinds().count("down_asked") == 1


def test_down_while_paused_or_in_dry_run_is_down(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.desk.pause("all", owner="ann")
    world.desk.pause("dry-run", owner="ann")

    down(world)


def test_down_launches_nothing(fast_path: Path) -> None:
    world = make_world(fast_path, lasts_s=100.0)
    world.ray.submit(20, GPU, 100.0)
    world.desk.close(drain_s=300.0, owner="test")
    launches = world.calls("launch")

    world.run(400, until=lambda: world.loop.is_done)

    assert world.calls("launch") == launches


def test_down_waits_for_jobs_and_ends_them_when_time_is_over(fast_path: Path) -> None:
    world = make_world(fast_path, lasts_s=10.0)
    job = world.desk.submit(JobSpec(entrypoint="true"))
    world.run(10)
    world.desk.close(drain_s=100.0, owner="test")
    world.run(80)
    assert world.desk.job(job.job_id).state is JobState.RUNNING
    assert world.loop.phase == "waiting for running jobs"

    world.run(100, until=lambda: world.loop.is_done)

    ended = world.desk.job(job.job_id)
    assert (ended.state, ended.message) == (JobState.CANCELLED, "the cluster went down")


def test_a_host_that_cannot_be_ended_is_named(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.fleet.unreachable = {"host-1"}
    world.desk.close(drain_s=0.0, owner="test")

    world.run(100, until=lambda: world.loop.is_done)

    assert world.loop.left_behind == ["host host-1: host-1 cannot be reached"]
    assert world.fleet.joined == {"host-1"}


def test_a_signal_during_the_start_takes_everything_down(fast_path: Path) -> None:
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.step()

    world.desk.close_now("a signal")
    world.desk.close_now("another signal")
    world.run(20, until=lambda: world.loop.is_done)

    assert world.kinds().count("down_asked") == 1
