"""Tests of the rhythm of the ticks, on a virtual clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hybrid.control.mailbox import Mailbox
from hybrid.control.runner import Outcome, Runner
from hybrid.core.errors import FencedError, LedgerLostError
from hybrid.core.views import StatusView
from tests.world.trace import Point
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
    seen: list[StatusView] = field(default_factory=list)
    pauses_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.end_s = self.world.clock.monotonic_s() + self.lasts_s

    def wait(self, timeout_s: float) -> None:
        self.pauses_s.append(timeout_s)
        self.seen.append(self.world.desk.status())
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


@pytest.mark.parametrize("error", [KeyError("nodes"), MemoryError(), OSError("no more files")])
def test_a_tick_that_hits_a_bug_does_not_end_the_controller(
    tmp_path: Path, error: Exception
) -> None:
    world = World(tmp_path)
    run(world, lasts_s=5.0)
    errors = [error] * 3

    def stumble(point: Point) -> None:
        if point.call == "view" and not point.is_after and errors:
            raise errors.pop()

    world.tracer.hook = stumble

    pauses = run(world, lasts_s=20.0)

    codes = [[alarm.code for alarm in status.alarms] for status in pauses.seen]
    assert codes[:4] == [["tick_failed"], ["tick_failed"], ["tick_failed"], []]
    first, third = pauses.seen[0], pauses.seen[2]
    assert first.controller.state == "degraded"
    assert type(error).__name__ in first.alarms[0].what
    assert third.alarms[0].since_at_s == first.alarms[0].since_at_s
    assert pauses.seen[3].controller.state == "ready"


def test_a_controller_that_is_fenced_off_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)

    def fenced() -> None:
        raise FencedError("another controller took over")

    monkeypatch.setattr(world.loop, "tick", fenced)
    mailbox = Pauses(world, 0.0, 20.0)

    assert Runner(world.loop, world.desk, mailbox, world.clock).run() is Outcome.FENCED


@pytest.mark.parametrize(("back_after_s", "outcome"), [(10.0, "stopped"), (None, "lost")])
def test_a_controller_whose_ledger_is_gone_for_good_makes_way_for_the_next(
    tmp_path: Path, back_after_s: float | None, outcome: str
) -> None:
    world = World(tmp_path)
    run(world, lasts_s=5.0)
    began_s = world.clock.monotonic_s()

    def gone(point: Point) -> None:
        gone_s = world.clock.monotonic_s() - began_s
        is_back = back_after_s is not None and gone_s >= back_after_s
        if point.call == "check_epoch" and not point.is_after and not is_back:
            raise LedgerLostError("the ledger was deleted")

    world.tracer.hook = gone
    pauses = Pauses(world, 0.0, 60.0)
    runner = Runner(world.loop, world.desk, pauses, world.clock)
    pauses.runner = runner

    assert runner.run().value == outcome
    lasted_s = world.clock.monotonic_s() - began_s
    assert lasted_s == pytest.approx(60.0 if back_after_s else 20.0, abs=2.0)
