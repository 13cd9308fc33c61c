"""The ledger is lost while machines work: rows are made anew from the clouds' tags."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.core.models import Caps, InstanceState
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World, make_offer, two_clouds

GPU = {"GPU": 1.0}
S = InstanceState


def make_world(folder: Path, *, gpus: int = 12) -> World:
    world = World(
        folder,
        params=quick_params(),
        offers=list(two_clouds()),
        step_s=STEP_S,
        store=MemoryStore(),
    )
    for cloud in world.clouds.values():
        cloud.boot_s = 10.0
    world.ray.submit(gpus, GPU, 200.0)
    return world


def until_running(world: World, count: int = 1) -> None:
    running = [S.RUNNING] * count
    world.run(100, until=lambda: [r.state for r in world.rows()] == running)


def lose_ledger(world: World) -> None:
    """The controller dies and the ledger's file is gone; the state folder is not."""
    assert world.store is not None
    world.store = MemoryStore(cluster_id=world.store.cluster_id)
    world.boot()


@pytest.mark.parametrize("count", [1, 2])
def test_what_works_goes_on_working_and_comes_home(fast_path: Path, count: int) -> None:
    world = make_world(fast_path, gpus=8 + 4 * count)
    until_running(world, count)

    lose_ledger(world)
    world.run(2 * STEP_S)

    assert [row.state for row in world.rows()] == [S.RUNNING] * count
    assert {row.provider_id for row in world.rows()} == {m.provider_id for m in world.machines()}
    assert {row.reason.code for row in world.rows()} == {"adopted"}
    assert world.loop.commitment.node_count == count
    world.run(1_000, until=world.is_quiet)
    world.assert_nothing_left()
    assert len(world.machines()) == count, "none was rented twice"
    assert world.ray.killed_busy == []
    assert all(task.deaths == 0 for task in world.ray.tasks)


def test_a_machine_that_still_boots_may_join(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.run(60, until=lambda: [r.state for r in world.rows()] == [S.BOOTING])

    lose_ledger(world)

    until_running(world)
    assert len(world.machines()) == 1


def test_it_is_paid_from_the_time_it_was_rented(fast_path: Path) -> None:
    world = make_world(fast_path)
    until_running(world)
    [before] = world.rows()

    lose_ledger(world)
    world.step()

    assert world.row().created_at_s == pytest.approx(before.created_at_s, abs=2 * STEP_S)
    assert world.row().offer.offer_id == before.offer.offer_id


@pytest.mark.parametrize("what", ["list", "offers"])
def test_a_cloud_that_is_silent_at_the_start_is_waited_for(fast_path: Path, what: str) -> None:
    """And until it answers, none of its machines is nobody's."""
    world = make_world(fast_path)
    until_running(world)
    lose_ledger(world)
    world.cloud.failing = {what}
    world.run(60)
    assert world.rows() == []

    world.cloud.failing = set()
    world.run(2 * STEP_S)

    assert [row.state for row in world.rows()] == [S.RUNNING]
    assert len(world.alive()) == 1


def test_what_is_not_offered_any_more_is_ended_as_an_orphan(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.may_kill_busy = True
    until_running(world)
    world.cloud.offer_list = [make_offer(offer_id="sim/another")]

    lose_ledger(world)
    world.run(100, until=lambda: not world.cloud.alive())

    assert "orphan_ended" in world.kinds()


def test_a_cap_that_was_lowered_meanwhile_kills_no_work(fast_path: Path) -> None:
    """As when nothing was lost: it lets nothing new in until there is room."""
    world = make_world(fast_path, gpus=16)
    until_running(world, 2)
    world.params = quick_params(caps=Caps(node_count=1))

    lose_ledger(world)
    world.params = quick_params()  # what the world holds us to
    world.step()

    assert [row.state for row in world.rows()] == [S.RUNNING] * 2
    assert world.loop.commitment.node_count == 2


def test_a_ledger_that_is_not_new_adopts_nothing(fast_path: Path) -> None:
    world = make_world(fast_path)
    until_running(world)
    [machine] = world.machines()
    world.run(1_000, until=world.is_quiet)
    stranger = world.cloud.create(machine.offer, machine.spec)

    world.boot()
    world.run(100, until=lambda: not world.cloud.is_alive(stranger))

    assert "orphan_ended" in world.kinds()


def test_a_new_cluster_adopts_nothing(fast_path: Path) -> None:
    world = make_world(fast_path, gpus=2)
    world.run(20)

    assert world.rows() == []
    assert world.loop.adopter.pending == set()
