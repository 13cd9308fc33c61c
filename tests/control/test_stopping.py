"""Tests of a signal to the controller: what goes on without it, and what is taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.control.mailbox import Mailbox
from hybrid.control.runner import Outcome, Runner
from tests.world.world import World


class NoPause(Mailbox):
    """The loop does not sleep."""

    def wait(self, timeout_s: float) -> None:
        return


def stop_at_once(world: World, *, is_fresh: bool) -> Outcome:
    runner = Runner(world.loop, world.desk, NoPause(), world.clock, is_fresh=is_fresh)
    runner.stop()
    return runner.run()


def test_a_cluster_that_is_not_ready_is_taken_back_by_the_run_that_started_it(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)

    assert stop_at_once(world, is_fresh=True) is Outcome.CLOSED
    assert (world.head.is_up, world.fleet.joined) == (False, set())


def test_a_cluster_that_was_up_before_goes_on_though_its_new_controller_is_not_ready_yet(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.run(30.0)
    world.boot()  # the one before crashed
    assert not world.loop.is_ready

    assert stop_at_once(world, is_fresh=False) is Outcome.STOPPED
    assert (world.head.is_up, len(world.fleet.joined)) == (True, 2)
    assert not world.ledger.mode().is_closing


@pytest.mark.parametrize("is_fresh", [True, False])
def test_a_ready_cluster_goes_on(tmp_path: Path, is_fresh: bool) -> None:
    world = World(tmp_path)
    world.run(30.0)
    assert world.loop.is_ready

    assert stop_at_once(world, is_fresh=is_fresh) is Outcome.STOPPED
    assert world.head.is_up
    assert not world.ledger.mode().is_closing
