"""One whole burst in the simulated world: breach, launch, join, work, drain, end."""

from __future__ import annotations

from pathlib import Path

from hybrid.core.models import InstanceState
from tests.world.world import World

GPU = {"GPU": 1.0}


def test_overflow_rents_works_and_comes_home(tmp_path: Path) -> None:
    world = World(tmp_path)
    tasks = world.ray.submit(14, GPU, 60.0)

    world.run(400, until=lambda: all(t.is_done for t in tasks))
    world.run(200, until=lambda: not world.cloud.alive())
    world.run(5)

    assert world.max_nodes == 2, "6 tasks of overflow need two machines of 4 GPUs"
    world.assert_nothing_left()
    assert world.ray.killed_busy == []
    assert {row.state for row in world.rows()} == {InstanceState.TERMINATED}
    assert all(t.deaths == 0 for t in tasks)
    kinds = world.kinds()
    for kind in (
        "instance_requested",
        "instance_booting",
        "instance_running",
        "instance_draining",
        "instance_terminating",
        "instance_terminated",
    ):
        assert kinds.count(kind) == 2, kind


def test_work_that_fits_at_home_never_rents(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ray.submit(8, GPU, 300.0)

    world.run(120)

    assert world.cloud.machines == {}


def test_nothing_is_rented_before_the_wait_and_the_stabilisation(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(3)
    world.ray.submit(12, GPU, 500.0)

    world.run(12)
    before = len(world.cloud.machines)
    world.run(4)

    assert before == 0
    assert len(world.cloud.machines) == 1


def test_booting_instances_count_so_nothing_is_launched_twice(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.cloud.boot_s = 100.0
    world.ray.submit(12, GPU, 500.0)

    world.run(90)

    assert len(world.cloud.machines) == 1


def test_the_reason_of_a_launch_names_its_numbers(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ray.submit(12, GPU, 500.0)

    world.run(30)

    reason = world.rows()[0].reason
    assert reason.code == "queue_wait"
    assert reason.facts["max_wait_s"] == 10.0
    assert float(reason.facts["waiting_s"]) > 10.0
    assert "over the limit of 10 s" in reason.message
