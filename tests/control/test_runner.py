"""Tests of the rhythm of the ticks, on a virtual clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hybrid.control.mailbox import Mailbox
from hybrid.control.runner import Outcome, Runner
from tests.world.world import World

GPU = {"GPU": 1.0}


@dataclass
class Pauses(Mailbox):
    """Lets virtual time pass where the loop would sleep, and ends the run in the end.

    Attributes:
        early: Share of each pause by which it ends too early, as jitter does.
    """

    world: World
    early: float
    lasts_s: float
    runner: Runner | None = None
    pauses_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.end_s = self.world.clock.monotonic_s() + self.lasts_s

    def wait(self, timeout_s: float) -> None:
        self.pauses_s.append(timeout_s)
        self.world.clock.advance(timeout_s * (1 - self.early))
        self.world.sync()
        self.world.ray.step()
        if self.runner and self.world.clock.monotonic_s() >= self.end_s:
            self.runner.stop()


def run(world: World, *, early: float = 0.0, lasts_s: float = 60.0) -> Pauses:
    pauses = Pauses(world, early, lasts_s)
    runner = Runner(world.loop, world.desk, pauses, world.clock)
    pauses.runner = runner
    assert runner.run() is Outcome.STOPPED
    return pauses


def test_a_calm_loop_ticks_once_a_tick(tmp_path: Path) -> None:
    pauses = run(World(tmp_path), lasts_s=20.0)

    # at the start it looks more often
    assert set(pauses.pauses_s) <= {0.25, 1.0}
    assert pauses.pauses_s[-5:] == [1.0] * 5


@pytest.mark.parametrize("early", [0.0, 0.001, 0.3])
def test_a_launch_is_not_late_by_a_tick_because_a_tick_came_early(
    tmp_path: Path, early: float
) -> None:
    world = World(tmp_path)
    run(world, lasts_s=5.0)
    world.ray.submit(12, GPU, 1_000.0)

    run(world, early=early, lasts_s=20.0)

    policy = world.params.policy
    facts = world.row().reason.facts
    late_s = float(facts["waiting_s"]) - policy.max_wait_s - policy.stabilisation_s
    assert 0.0 <= late_s <= 0.5 * world.params.tick_s


def test_a_wait_that_ends_right_after_a_tick_costs_no_tick_of_its_own(tmp_path: Path) -> None:
    world = World(tmp_path)
    run(world, lasts_s=5.0)
    world.ray.submit(12, GPU, 1_000.0)

    pauses = run(world, early=0.001, lasts_s=14.0)

    assert min(pauses.pauses_s) > 0.5 * world.params.tick_s
    assert world.rows()


def test_many_waits_that_end_one_after_the_other_do_not_make_it_tick_without_a_pause(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, host_count=0)
    run(world, lasts_s=5.0)
    for number in range(30):
        world.ray.submit(1, {"TPU": 1.0 + number}, 1_000.0)  # nobody ever has them

    pauses = run(world, early=0.05, lasts_s=20.0)

    assert min(pauses.pauses_s) >= 0.1 * world.params.tick_s
    assert len(pauses.pauses_s) <= 30
