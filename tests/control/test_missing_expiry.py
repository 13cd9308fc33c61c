"""A machine without an expiry of its own: a crash came between two calls of its launch.

Items 11 and 26 of the reliability contract, for clouds that set the expiry after the create.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hybrid.core.models import InstanceState
from tests.world.cloud import Machine
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World

S = InstanceState


def make_world(folder: Path) -> World:
    world = World(folder, params=quick_params(), step_s=STEP_S)
    world.cloud.boot_s = 60.0
    world.ray.submit(12, {"GPU": 1.0}, 5000.0)
    return world


def forget_expiry(machine: Machine) -> None:
    machine.expires_at_s = None
    machine.lease_end_s = math.inf


def test_a_launch_without_an_expiry_gets_one_at_the_next_tick(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.launch_faults = ["lost"]
    world.run(100, until=lambda: bool(world.machines()))
    [machine] = world.machines()
    forget_expiry(machine)

    world.run(2 * STEP_S)

    assert world.row().state is S.BOOTING
    assert machine.expires_at_s == pytest.approx(
        world.clock.true_s() + world.params.lease_s, abs=3 * STEP_S
    )


def test_an_expiry_that_is_there_is_renewed_no_sooner(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.run(100, until=lambda: bool(world.machines()))

    world.run(world.params.renew_s / 2)

    assert world.calls("extend") == 0


def test_a_cloud_that_will_not_set_it_is_not_asked_at_every_tick(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.run(100, until=lambda: bool(world.machines()))
    [machine] = world.machines()
    forget_expiry(machine)
    world.cloud.failing = {"extend"}

    world.run(world.params.renew_s - STEP_S)

    assert 2 <= world.calls("extend") <= 5  # of eleven ticks
    assert "lease not renewed" in world.row().problem
