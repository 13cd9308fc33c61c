"""A start that would strand machines is refused, with the list of them (item 36)."""

from __future__ import annotations

from pathlib import Path

from hybrid.control.guards import missing_places
from hybrid.core.models import Caps, InstanceState
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World, make_offer, two_clouds

GPU = {"GPU": 1.0}


def make_world(folder: Path, *, count: int = 12) -> World:
    world = World(folder, params=quick_params(), offers=list(two_clouds()), step_s=STEP_S)
    world.cloud.boot_s = 10.0
    world.ray.submit(count, GPU, 20.0)
    world.run(60, until=lambda: bool(world.machines()))
    return world


def test_a_provider_with_live_instances_cannot_be_removed(fast_path: Path) -> None:
    world = make_world(fast_path, count=16)

    words = missing_places(world.ledger, {"other": [""]})

    assert "the configuration has no provider sim any more, but 2 instances" in words
    assert "i-0001 (sim sim-m1, booting), i-0002 (sim sim-m2, booting)" in words
    assert "hybrid down" in words


def test_a_region_with_live_instances_cannot_be_removed(fast_path: Path) -> None:
    """Its create answer may be lost, and a region without a pool is in no list."""
    world = World(fast_path, params=quick_params(), offers=[make_offer(region="eu")], step_s=STEP_S)
    world.cloud.launch_faults = ["lost"]
    world.ray.submit(12, GPU, 20.0)
    world.run(60, until=lambda: bool(world.machines()))

    words = missing_places(world.ledger, {"sim": ["us"]})

    assert "the configuration has no pool in sim/eu any more, but 1 instance" in words
    assert missing_places(world.ledger, {"sim": ["us", "eu"]}) == ""


def test_a_provider_without_live_instances_can(fast_path: Path) -> None:
    world = make_world(fast_path)

    assert missing_places(world.ledger, {"sim": [""]}) == ""
    world.run(400, until=world.is_quiet)
    assert missing_places(world.ledger, {}) == ""


def test_an_intent_without_an_answer_counts_too(fast_path: Path) -> None:
    world = World(fast_path, params=quick_params(), step_s=STEP_S)
    world.cloud.failing = {"launch"}
    world.ray.submit(12, GPU, 20.0)
    world.run(60, until=lambda: bool(world.rows()))

    assert "i-0001 (sim id unknown, requested)" in missing_places(world.ledger, {})


def test_a_long_list_is_cut(fast_path: Path) -> None:
    world = make_world(fast_path)
    template = world.row()
    for number in range(30):
        changes = {"instance_id": f"i-x{number}", "state": InstanceState.REQUESTED}
        row = template.model_copy(update=changes)
        world.ledger.request(row, caps=Caps(), exit_s=0, now_s=world.clock.now_s())

    words = missing_places(world.ledger, {})

    assert "31 instances" in words
    assert "and 11 more" in words
