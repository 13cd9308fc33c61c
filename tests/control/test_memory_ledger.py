"""The ledger in memory, which most histories are played on, tells the same as the real one."""

from __future__ import annotations

import pytest

from tests.world.chaos import Chaos
from tests.world.history import Story, tell
from tests.world.ledgers import fast_folder


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_the_same_bad_luck_leaves_the_same_history(seed: int) -> None:
    memory = Chaos(seed)
    memory.run()
    disk = Chaos(seed, is_on_disk=True)

    disk.run()

    assert disk.told == memory.told
    assert disk.log == memory.log


@pytest.mark.parametrize("down_s", [None, 60.0], ids=["burst", "down"])
def test_the_same_story_passes_the_same_points(down_s: float | None) -> None:
    told = []
    for is_on_disk in (False, True):
        story = Story("same", down_s=down_s, is_on_disk=is_on_disk)
        with fast_folder() as folder:
            world = story.make(folder)
            world.tracer.is_recording = True
            story.play(world)
            told.append((tell(world), [str(p) for p in world.tracer.points]))

    assert told[0] == told[1]
